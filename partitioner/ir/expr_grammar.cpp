// Row expressions: a closed grammar, checked token by token, so that a row can name numbers, its own arguments, operators and
// prelude functions and nothing else.

#include <algorithm>
#include <cctype>

#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::ir {
namespace {

constexpr std::string_view kOperators[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+", "-", "*", "/", "%",
                                           "<",  ">",  "!",  "&",  "|",  "^",  "~",  "(", ")", ",", "?", ":"};

class Tokenizer {
 public:
  Tokenizer(std::string_view text, const std::vector<std::string>& holes, std::string_view row)
      : text_(text), holes_(holes), row_(row) {}

  Expr run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ') {
        ++at_;
      } else if (c == '{') {
        hole();
      } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') {
        number();
      } else if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word();
      } else {
        symbol();
      }
    }
    FXF_CHECK(depth_ == 0, Value, "row {}: unbalanced parentheses in '{}'", row_, text_);
    FXF_CHECK(!out_.empty(), Value, "row {}: an empty expression", row_);
    return std::move(out_);
  }

 private:
  void push(ExprPiece::Kind kind, std::string text) {
    if (kind == ExprPiece::Kind::Text && !out_.empty() && out_.back().kind == kind && out_.back().text != "T" &&
        out_.back().text.substr(0, 4) != "fxf_" && text != "T" && text.substr(0, 4) != "fxf_") {
      out_.back().text += text;
      return;
    }
    out_.push_back({kind, std::move(text)});
  }

  void hole() {
    const std::size_t end = text_.find('}', at_);
    FXF_CHECK(end != std::string_view::npos, Value, "row {}: a hole is not closed in '{}'", row_, text_);
    const std::string name(text_.substr(at_ + 1, end - at_ - 1));
    FXF_CHECK(std::find(holes_.begin(), holes_.end(), name) != holes_.end(), Value,
              "row {}: hole {{{}}} in '{}' is not a parameter of the row", row_, name, text_);
    out_.push_back({ExprPiece::Kind::Hole, name});
    at_ = end + 1;
  }

  void number() {
    std::size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool exponent_sign = (c == '-' || c == '+') && end > at_ && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.' && c != 'e' && c != 'E' && !exponent_sign) break;
      ++end;
    }
    out_.push_back({ExprPiece::Kind::Number, std::string(text_.substr(at_, end - at_))});
    at_ = end;
  }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_')) ++end;
    const std::string name(text_.substr(at_, end - at_));
    at_ = end;
    if (name == "inf" || name == "nan") {
      out_.push_back({ExprPiece::Kind::Number, name});
      return;
    }
    if (name == "T") {
      out_.push_back({ExprPiece::Kind::Text, "T"});
      return;
    }
    const auto& functions = prelude_functions();
    FXF_CHECK(std::find(functions.begin(), functions.end(), name) != functions.end(), Value,
              "row {}: '{}' in '{}' is neither a prelude function nor T, inf or nan", row_, name, text_);
    out_.push_back({ExprPiece::Kind::Text, "fxf_" + name});
  }

  void symbol() {
    for (std::string_view candidate : kOperators) {
      if (text_.substr(at_, candidate.size()) != candidate) continue;
      if (candidate == "(") ++depth_;
      if (candidate == ")") --depth_;
      FXF_CHECK(depth_ >= 0, Value, "row {}: unbalanced parentheses in '{}'", row_, text_);
      push(ExprPiece::Kind::Text, std::string(candidate));
      at_ += candidate.size();
      return;
    }
    throw_error(ErrorKind::Value, fmt::format("row {}: '{}' is not allowed in the expression '{}'", row_, text_[at_], text_));
  }

  std::string_view text_;
  const std::vector<std::string>& holes_;
  std::string_view row_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Expr out_;
};

}  // namespace

Expr compile_expr(std::string_view text, const std::vector<std::string>& holes, std::string_view row) {
  return Tokenizer(text, holes, row).run();
}

const std::vector<std::string_view>& prelude_functions() {
  static const std::vector<std::string_view> names = {
      "abs",   "acos",  "acosh", "asin",   "asinh", "atan",      "atan2",     "atanh",     "ceil",  "copysign", "cos",  "cosh",
      "digamma", "div_floor", "div_trunc", "erf", "erfc", "erfinv", "exp",   "exp2",  "expm1",     "floor",     "fmax",      "fmin",
      "fmod",  "frac",  "hypot", "isfinite", "isinf", "isnan",   "lgamma",    "log",       "log10", "log1p",    "log2", "max",
      "min",   "nextafter", "pow", "remainder", "rint", "rsqrt", "shl",       "shr",       "sigmoid", "sign",   "signbit", "sin",
      "sinh",  "sqrt",  "tan",   "tanh",   "trunc"};
  return names;
}

}  // namespace fxfuser::ir
