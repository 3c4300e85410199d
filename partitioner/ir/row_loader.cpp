#include "partitioner/ir/row_loader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "partitioner/ir/error.h"

namespace fxfuser::ir {
namespace {

template <typename T>
using Words = std::vector<std::pair<std::string_view, T>>;

const Words<OpKind>& kinds() {
  static const Words<OpKind> words{{"pointwise", OpKind::Pointwise}, {"cast", OpKind::Cast},
                                   {"reduction", OpKind::Reduction}, {"view", OpKind::View},
                                   {"position", OpKind::Position},   {"indexed", OpKind::Indexed},
                                   {"factory", OpKind::Factory},     {"composite", OpKind::Composite}};
  return words;
}

const Words<DTypeSet>& dtype_sets() {
  static const Words<DTypeSet> words{{"float", DTypeSet::Float},     {"int", DTypeSet::Int},       {"bool", DTypeSet::Bool},
                                     {"intbool", DTypeSet::IntBool}, {"number", DTypeSet::Number}, {"any", DTypeSet::Any}};
  return words;
}

const Words<ResultRule>& results() {
  static const Words<ResultRule> words{{"default", ResultRule::Default},
                                       {"no_opmath", ResultRule::NoOpmath},
                                       {"int_to_float", ResultRule::IntToFloat},
                                       {"always_bool", ResultRule::AlwaysBool},
                                       {"bool_to_long", ResultRule::BoolToLong},
                                       {"complex_to_float", ResultRule::ComplexToFloat},
                                       {"same", ResultRule::Same},
                                       {"attr:dtype", ResultRule::AttrDType},
                                       {"long", ResultRule::Long}};
  return words;
}

/// The namespace whose ops the table defines.
constexpr std::string_view kOwnNamespace = "nvprims.";

constexpr std::array<std::string_view, 8> kStrides{"iterator", "contiguous", "like_self", "memory_format", "input_format", "view", "own", "copy"};

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\n", at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t\n", at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

bool is_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// The op of a row in the making, for messages, and the text of one key.
class Loader {
 public:
  Loader(const RowFields& fields, ReadValue read_value, const RowFunctions& functions) : fields_(fields), read_value_(read_value), functions_(functions) {}

  OpRow run() {
    row_.op = fields_.op;
    check(is_name(row_.op), "op", fmt::format("'{}' is not a name", row_.op));
    row_.kind = word("kind", kinds(), std::optional<OpKind>());
    load_targets();
    load_params();
    load_rules();
    load_lists();
    load_expressions();
    load_schemas();
    check_targets();
    return std::move(row_);
  }

 private:
  void check(bool condition, std::string_view key, const std::string& what) const {
    FXF_CHECK(condition, Value, "row '{}', key '{}': {}", fields_.op, key, what);
  }

  bool given(std::string_view key) const { return fields_.words.contains(key); }

  std::string_view text(std::string_view key, std::string_view fallback = "") const {
    const auto it = fields_.words.find(key);
    return it == fields_.words.end() ? fallback : std::string_view(it->second);
  }

  template <typename T>
  T word(std::string_view key, const Words<T>& words, std::optional<T> fallback) const {
    if (!given(key)) {
      check(fallback.has_value(), key, "is missing");
      return *fallback;
    }
    const std::string_view chosen = text(key);
    std::string known;
    for (const auto& [name, value] : words) {
      if (name == chosen) return value;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    check(false, key, fmt::format("unknown word '{}'; known: {}", chosen, known));
    return words.front().second;
  }

  void load_targets() {
    for (const auto& [target, arguments] : fields_.targets) {
      check(!target.empty() && target.find(' ') == std::string::npos, "targets", fmt::format("'{}' is not a target", target));
      check(std::none_of(row_.targets.begin(), row_.targets.end(), [&](const OpTarget& t) { return t.target == target; }),
            "targets", fmt::format("'{}' is given twice", target));
      row_.targets.push_back(load_target(target, arguments));
    }
  }

  OpTarget load_target(const std::string& target, const std::string& arguments) {
    OpTarget form;
    form.target = target;
    for (const std::string& token : split(arguments)) {
      const std::size_t equals = token.find('=');
      if (equals != std::string::npos) {
        const std::string name = token.substr(0, equals);
        add_param(target, name, form);
        form.fixed[name] = read_value_(token.substr(equals + 1), fields_.op);
        continue;
      }
      check(form.fixed.empty(), "targets", fmt::format("'{}': '{}' after a fixed value", target, token));
      load_argument(token, form);
    }
    return form;
  }

  void load_argument(const std::string& token, OpTarget& form) {
    if (token == "_") return form.names.emplace_back(), void();
    if (token[0] != '!') {
      add_param(form.target, token, form);
      form.names.push_back(token);
      return;
    }
    const std::string name = token.substr(1);
    check(name.empty() || is_name(name), "targets", fmt::format("'{}': '{}' is not a name", form.target, token));
    form.must_default_at.push_back(form.names.size());
    form.must_default.push_back(name.empty() ? fmt::format("argument {}", form.names.size()) : name);
    form.names.emplace_back();
  }

  void add_param(const std::string& target, const std::string& name, const OpTarget& form) {
    check(is_name(name), "targets", fmt::format("'{}': '{}' is not a name", target, name));
    check(!has(form.names, name) && !form.fixed.contains(name), "targets", fmt::format("'{}': '{}' is given twice", target, name));
    if (!has(seen_, name)) seen_.push_back(name);
  }

  void load_params() {
    row_.params = given("params") ? split(text("params")) : seen_;
    std::set<std::string> once;
    for (const std::string& param : row_.params) {
      check(is_name(param), "params", fmt::format("'{}' is not a name", param));
      check(once.insert(param).second, "params", fmt::format("'{}' is given twice", param));
    }
    check(!row_.params.empty(), "targets", fields_.targets.empty() ? "is missing: overload -> its arguments" : "no target names an argument");
    for (const std::string& name : seen_) check(has(row_.params, name), "params", fmt::format("lacks '{}' of a target", name));
    for (const auto& [name, value] : fields_.args) {
      check(has(row_.params, name), "args", fmt::format("'{}' is not a parameter", name));
      row_.defaults[name] = value;
    }
    numbers_ = split(text("numbers"));
    row_.exact = by_target("exact");
    row_.rounded = by_target("rounded");
    for (const std::string& name : numbers_) check(has(row_.params, name), "numbers", fmt::format("'{}' is not a parameter", name));
  }

  /// The names under a key, and those for one target under `key`_cuda and `key`_host.
  OpRow::ByTarget by_target(const std::string& key) const {
    const auto names = [&](const std::string& target) {
      std::vector<std::string> found = split(text(key));
      const std::string own = key + "_" + target;
      for (const std::string& name : split(text(own))) found.push_back(name);
      for (const std::string& name : found) check(has(row_.params, name), has(split(text(own)), name) ? own : key, fmt::format("'{}' is not a parameter", name));
      return found;
    };
    return {names("cuda"), names("host")};
  }

  ResultRule default_result() const {
    switch (row_.kind) {
      case OpKind::Cast: return ResultRule::AttrDType;
      case OpKind::Pointwise:
      case OpKind::Position: return ResultRule::Default;
      default: return ResultRule::Same;
    }
  }

  std::string_view default_strides() const {
    switch (row_.kind) {
      case OpKind::Pointwise:
      case OpKind::Cast: return "iterator";
      case OpKind::View: return "view";
      default: return "contiguous";
    }
  }

  void load_rules() {
    row_.dtypes = word("dtypes", dtype_sets(), std::optional(DTypeSet::Number));
    row_.result = word("result", results(), std::optional(default_result()));
    if (row_.result == ResultRule::AttrDType) check(has(row_.params, "dtype"), "result", "attr:dtype without a parameter 'dtype'");
    row_.strides = text("strides", default_strides());
    check(std::find(kStrides.begin(), kStrides.end(), row_.strides) != kStrides.end(), "strides",
          fmt::format("unknown word '{}'; known: {}", row_.strides, fmt::join(kStrides, ", ")));
    if (fields_.cost) std::tie(row_.cost_slots, row_.cost_special) = *fields_.cost;
    check(row_.cost_slots >= 0 && row_.cost_special >= 0, "cost", "is negative");
    const auto flag = [&](std::string_view key) {
      const auto it = fields_.flags.find(key);
      return it != fields_.flags.end() && it->second;
    };
    row_.arg_state = flag("arg_state");
    row_.metadata_only = flag("metadata_only");
    row_.via = text("via");
    row_.fallback = text("fallback");
  }

  void load_lists() {
    row_.outputs = split(text("outputs", "out"));
    check(!row_.outputs.empty(), "outputs", "is empty");
    row_.writes = split(text("writes"));
    for (const std::string& name : row_.writes) check(has(row_.params, name), "writes", fmt::format("'{}' is not a parameter", name));
    row_.functional = text("functional");
    check(row_.functional.empty() || !row_.writes.empty(), "functional", "contradicts a row without hidden writes");
    row_.checks = split(text("check"));
  }

  void refuse(std::string_view why, std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys) check(!given(key), key, fmt::format("contradicts {}", why));
  }

  void load_expressions() {
    if (row_.kind != OpKind::Composite) refuse("a kind other than composite", {"via"});
    else check(!row_.via.empty(), "via", "is missing: a composite names its decomposition");
    if (row_.kind != OpKind::Pointwise) refuse("a kind other than pointwise", {"expr", "cuda", "host", "narrow", "exact", "exact_cuda", "exact_host", "rounded", "rounded_cuda", "rounded_host"});
    if (row_.kind != OpKind::Pointwise && row_.kind != OpKind::Reduction) {
      refuse("a kind without an expression", {"numbers"});
    }
    if (row_.kind != OpKind::Reduction) {
      refuse("a kind other than reduction", {"pre", "fold", "init", "post"});
      check(!row_.arg_state, "arg_state", "contradicts a kind other than reduction");
    }
    if (row_.kind == OpKind::Pointwise) load_pointwise();
    if (row_.kind == OpKind::Reduction) load_reduction();
  }

  Expr compile(std::string_view key, const std::vector<std::string>& holes, std::string_view fallback = "", std::string_view functions = {}) const {
    return compile_expr(text(key, fallback), holes, fmt::format("{}.{}", row_.op, key), functions);
  }

  /// A pointwise expression, and what it calls of the functions given for its target.
  Expr compile_own(std::string_view key, const std::string& given, std::string& called) const {
    Expr expr = compile(key, row_.params, "", given);
    if (std::any_of(expr.begin(), expr.end(), [](const ExprPiece& piece) { return piece.kind == ExprPiece::Kind::Function; })) called = given;
    return expr;
  }

  void load_pointwise() {
    if (given("expr")) refuse("expr", {"cuda", "host"});
    for (const std::string_view key : {"expr", "cuda"}) {
      if (given(key)) row_.expr_cuda = compile_own(key, functions_.cuda, row_.functions.cuda);
    }
    for (const std::string_view key : {"expr", "host"}) {
      if (given(key)) row_.expr_host = compile_own(key, functions_.host, row_.functions.host);
    }
    check(!row_.expr_cuda.empty() || !row_.expr_host.empty(), "expr", "is missing: a pointwise row needs an expression");
    const auto mentions = [](const Expr& expr, const std::string& param) {
      return std::any_of(expr.begin(), expr.end(),
                         [&](const ExprPiece& p) { return p.kind == ExprPiece::Kind::Hole && p.text == param; });
    };
    for (const std::string& param : row_.params) {
      if (!has(numbers_, param) && (mentions(row_.expr_cuda, param) || mentions(row_.expr_host, param))) {
        row_.tensor_params.push_back(param);
      }
    }
    check(!row_.tensor_params.empty(), "expr", "reads no tensor parameter");
    if (!given("narrow")) return;
    check(!row_.expr_cuda.empty(), "narrow", "stands for the CUDA expression, and there is none");
    row_.expr_narrow = compile_own("narrow", functions_.cuda, row_.functions.cuda);
    for (const std::string& param : row_.params) check(!mentions(row_.expr_narrow, param) || mentions(row_.expr_cuda, param), "narrow", fmt::format("reads '{}', which the expression does not", param));
  }

  void load_reduction() {
    check(has(row_.params, "self"), "params", "a reduction needs a parameter 'self'");
    check(given("fold"), "fold", "is missing");
    check(given("init"), "init", "is missing");
    std::vector<std::string> post_holes{"acc", "n"};
    for (const std::string& param : row_.params) {
      if (param != "self") post_holes.push_back(param);
    }
    std::vector<std::string> fold_holes{"a", "b"};
    if (row_.arg_state) fold_holes.insert(fold_holes.end(), {"ai", "bi"});
    row_.pre = compile("pre", {"self"}, "{self}");
    row_.fold = compile("fold", fold_holes);
    row_.init = compile("init", {});
    row_.post = compile("post", post_holes, "{acc}");
    row_.tensor_params = {"self"};
  }

  /// Targets of nvprims have a schema: given, or for a pointwise row tensors in, one tensor out.
  void load_schemas() {
    for (const auto& [target, schema] : fields_.schemas) {
      const auto known = std::find_if(row_.targets.begin(), row_.targets.end(), [&](const OpTarget& t) { return t.target == target; });
      check(known != row_.targets.end(), "schemas", fmt::format("'{}' is not a target of the row", target));
      check(target.starts_with(kOwnNamespace), "schemas", fmt::format("'{}' is not in {}", target, kOwnNamespace));
      check(schema.starts_with('('), "schemas", fmt::format("'{}': a schema starts at its parenthesis", target));
      known->schema = schema;
    }
    for (OpTarget& target : row_.targets) {
      if (!target.schema.empty() || !target.target.starts_with(kOwnNamespace)) continue;
      const bool plain = row_.kind == OpKind::Pointwise &&
                         std::all_of(target.names.begin(), target.names.end(), [&](const std::string& n) { return has(row_.tensor_params, n); });
      check(plain, "schemas", fmt::format("lacks '{}', which is more than tensors in, one tensor out", target.target));
      target.schema = fmt::format("(Tensor {}) -> Tensor", fmt::join(target.names, ", Tensor "));
    }
  }

  /// Each overload must give every operand of the expression.
  void check_targets() const {
    for (const OpTarget& target : row_.targets) {
      for (const std::string& param : row_.tensor_params) {
        check(has(target.names, param) || target.fixed.contains(param) || row_.defaults.contains(param), "targets",
              fmt::format("'{}' gives no value for '{}'", target.target, param));
      }
      for (const std::string& param : numbers_) {
        check(has(target.names, param) || target.fixed.contains(param) || row_.defaults.contains(param), "targets",
              fmt::format("'{}' gives no value for '{}'", target.target, param));
      }
    }
  }

  const RowFields& fields_;
  ReadValue read_value_;
  const RowFunctions& functions_;
  OpRow row_;
  std::vector<std::string> seen_;  // params in order of first appearance over the targets
  std::vector<std::string> numbers_;
};

}  // namespace

OpRow load_row(const RowFields& fields, ReadValue read_value, const RowFunctions& functions) { return Loader(fields, read_value, functions).run(); }

const std::vector<std::string_view>& text_keys() {
  static const std::vector<std::string_view> keys{"params", "numbers", "kind", "outputs", "dtypes",   "result", "expr",  "cuda",   "host",   "narrow",
                                                  "pre",    "init",    "fold", "post",    "via",      "fallback", "writes", "functional", "check", "strides",
                                                  "exact",  "exact_cuda", "exact_host", "rounded", "rounded_cuda", "rounded_host"};
  return keys;
}

}  // namespace fxfuser::ir
