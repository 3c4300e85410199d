// Row expressions: a tokeniser and a checker by recursive descent. Nothing is evaluated here; the point is that a text that
// passes can't name anything but its holes and the prelude, and is well-formed C once the holes are filled.

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "partitioner/ir/error.h"
#include "partitioner/ir/hash.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::ir {
namespace {

using Kind = ExprPiece::Kind;

constexpr int kMaxDepth = 200;  // rows are written by hand; deeper is an attack on the stack

const std::vector<std::string_view>& binary_functions() {
  static const std::vector<std::string_view> names{"atan2", "copysign",  "div_floor", "div_trunc", "fmax", "fmin", "fmod", "hypot",
                                                   "max",   "min",       "narrow_div", "nextafter", "pow", "remainder", "shl", "shr"};
  return names;
}

int arity_of(std::string_view function) {
  if (function == "random_bits") return 3;
  const auto& binary = binary_functions();
  return std::find(binary.begin(), binary.end(), function) != binary.end() ? 2 : 1;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Has a C++ text this word with a parenthesis after it? What it is then is the compiler's business.
bool defines(std::string_view functions, std::string_view name) {
  for (std::size_t at = functions.find(name); at != std::string_view::npos; at = functions.find(name, at + 1)) {
    if (at > 0 && is_word(functions[at - 1])) continue;
    const std::size_t next = functions.find_first_not_of(' ', at + name.size());
    if (next != std::string_view::npos && functions[next] == '(') return true;
  }
  return false;
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::vector<std::string>& holes, std::string_view row, std::string_view functions)
      : text_(text), holes_(holes), row_(row), functions_(functions) {}

  Expr run() {
    Expr tokens;
    while (true) {
      while (at_ < text_.size() && text_[at_] == ' ') ++at_;
      if (at_ == text_.size()) return tokens;
      tokens.push_back(next());
    }
  }

 private:
  ExprPiece next() {
    const char c = text_[at_];
    if (c == '{') return hole();
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number();
    if (is_word(c)) return word();
    return symbol();
  }

  ExprPiece hole() {
    const std::size_t end = text_.find('}', at_);
    FXF_CHECK(end != std::string_view::npos, Value, "row '{}': a hole is not closed in '{}'", row_, text_);
    std::string name(text_.substr(at_ + 1, end - at_ - 1));
    FXF_CHECK(std::find(holes_.begin(), holes_.end(), name) != holes_.end(), Value,
              "row '{}': unknown hole {{{}}} in '{}'; known: {}", row_, name, text_, fmt::join(holes_, ", "));
    at_ = end + 1;
    return {Kind::Hole, std::move(name)};
  }

  ExprPiece number() {
    const std::size_t begin = at_;
    digits();
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      FXF_CHECK(at_ < text_.size() && is_digit(text_[at_]), Value, "row '{}': bad number in '{}'", row_, text_);
      digits();
    }
    FXF_CHECK(at_ == text_.size() || !is_word(text_[at_]), Value, "row '{}': bad number '{}' in '{}'", row_,
              text_.substr(begin, at_ - begin + 1), text_);
    return {Kind::Number, std::string(text_.substr(begin, at_ - begin))};
  }

  void digits() {
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  }

  ExprPiece word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "T" || name == "inf" || name == "nan" || contains(prelude_functions(), name)) return {Kind::Text, std::string(name)};
    FXF_CHECK(defines(functions_, name), Value, "row '{}': '{}' is not in the vocabulary of expressions{} ('{}')", row_, name,
              functions_.empty() ? "" : ", nor a function of the text given for this target", text_);
    return {Kind::Function, functions_namespace(functions_) + "::" + std::string(name)};
  }

  ExprPiece symbol() {
    static const std::vector<std::string_view> two{"<=", ">=", "==", "!=", "&&", "||", "<<", ">>"};
    const std::string_view pair = text_.substr(at_, 2);
    if (contains(two, pair)) {
      at_ += 2;
      return {Kind::Text, std::string(pair)};
    }
    const char c = text_[at_];
    FXF_CHECK(std::string_view("+-*/%<>!&|^~?:(),").find(c) != std::string_view::npos, Value,
              "row '{}': unexpected '{}' in '{}'", row_, c, text_);
    ++at_;
    return {Kind::Text, std::string(1, c)};
  }

  std::string_view text_;
  const std::vector<std::string>& holes_;
  std::string_view row_, functions_;
  std::size_t at_ = 0;
};

/// conditional := binary [? conditional : conditional]; binary := unary (operator unary)*; precedence is C's own business.
class Checker {
 public:
  Checker(const Expr& tokens, std::string_view text, std::string_view row) : tokens_(tokens), text_(text), row_(row) {}

  void run() {
    conditional(0);
    if (at_ != tokens_.size()) fail(fmt::format("unexpected '{}'", tokens_[at_].text));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw_error(ErrorKind::Value, fmt::format("row '{}': {} in '{}'", row_, what, text_));
  }

  bool peek(std::string_view text) const {
    return at_ < tokens_.size() && tokens_[at_].kind == Kind::Text && tokens_[at_].text == text;
  }

  bool accept(std::string_view text) {
    if (!peek(text)) return false;
    ++at_;
    return true;
  }

  void expect(std::string_view text) {
    if (!accept(text)) fail(fmt::format("expected '{}'{}", text, at_ < tokens_.size() ? " before '" + tokens_[at_].text + "'" : ""));
  }

  bool accept_binary() {
    static const std::vector<std::string_view> operators{"+",  "-",  "*",  "/",  "%", "<", "<=", ">", ">=",
                                                         "==", "!=", "&&", "||", "&", "|", "^",  "<<", ">>"};
    if (at_ == tokens_.size() || tokens_[at_].kind != Kind::Text || !contains(operators, tokens_[at_].text)) return false;
    ++at_;
    return true;
  }

  void conditional(int depth) {
    binary(depth);
    if (!accept("?")) return;
    conditional(depth + 1);
    expect(":");
    conditional(depth + 1);
  }

  void binary(int depth) {
    do {
      unary(depth);
    } while (accept_binary());
  }

  void unary(int depth) {
    if (depth > kMaxDepth) fail("too deep nesting");
    // `--` would glue into C's decrement: signs are separated by parentheses.
    if (accept("-") || accept("+") || accept("!") || accept("~")) {
      if (peek("-") || peek("+")) fail("two signs in a row");
      return unary(depth + 1);
    }
    primary(depth);
  }

  void primary(int depth) {
    if (at_ == tokens_.size()) fail("the expression ends too soon");
    const ExprPiece& token = tokens_[at_];
    if (token.kind == Kind::Function) {
      ++at_;
      arguments(depth);
      return;
    }
    if (token.kind != Kind::Text || token.text == "inf" || token.text == "nan") {
      ++at_;
      return;
    }
    if (accept("(")) {
      conditional(depth + 1);
      return expect(")");
    }
    if (!is_word(token.text[0])) fail(fmt::format("unexpected '{}'", token.text));
    ++at_;
    call(token.text, depth);
  }

  int arguments(int depth) {
    expect("(");
    int count = 0;
    do {
      conditional(depth + 1);
      ++count;
    } while (accept(","));
    expect(")");
    return count;
  }

  void call(const std::string& function, int depth) {
    const int count = arguments(depth);
    const int arity = arity_of(function);
    if (count != arity) fail(fmt::format("{} takes {} argument{}, not {},", function, arity, arity == 1 ? "" : "s", count));
  }

  const Expr& tokens_;
  std::string_view text_;
  std::string_view row_;
  std::size_t at_ = 0;
};

}  // namespace

const std::vector<std::string_view>& prelude_functions() {
  static const std::vector<std::string_view> names{
      "abs",  "acos",      "acosh", "asin",    "asinh", "atan",   "atan2",  "atanh", "ceil",      "copysign",  "cos",
      "cosh", "digamma",   "div_floor", "div_trunc", "erf", "erfc", "erfinv", "exp",  "exp2",      "expm1",     "floor",
      "fmax", "fmin",      "fmod",  "frac",    "hypot", "isfinite", "isinf", "isnan", "lgamma",   "log",       "log10",
      "log1p", "log2",     "max",   "min", "narrow_div", "narrow_exp", "narrow_exp2", "narrow_gelu",
      "narrow_gelu_slope", "narrow_sigmoid", "narrow_sqrt", "nextafter", "pow", "random_bits", "remainder", "rint", "rsqrt",  "shl",       "shr",
      "sigmoid", "sign",   "signbit", "sin",   "sinh",  "sqrt",   "tan",    "tanh",  "trunc"};
  return names;
}

std::string functions_namespace(std::string_view text) { return "fxf_own_" + to_hex(hash_bytes(text)).substr(0, 16); }

Expr compile_expr(std::string_view text, const std::vector<std::string>& holes, std::string_view row, std::string_view functions) {
  Expr tokens = Lexer(text, holes, row, functions).run();
  FXF_CHECK(!tokens.empty(), Value, "row '{}': empty expression", row);
  Checker(tokens, text, row).run();
  return tokens;
}

}  // namespace fxfuser::ir
