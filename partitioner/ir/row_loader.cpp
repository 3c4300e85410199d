#include "partitioner/ir/row_loader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "partitioner/ir/error.h"

namespace fxfuser::ir {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
struct Word {
  std::string_view text;
  T value;
};

constexpr Word<OpKind> kKinds[] = {{"pointwise", OpKind::Pointwise}, {"cast", OpKind::Cast},       {"reduction", OpKind::Reduction},
                                   {"view", OpKind::View},           {"position", OpKind::Position}, {"indexed", OpKind::Indexed},
                                   {"factory", OpKind::Factory},     {"composite", OpKind::Composite}};
constexpr Word<DTypeSet> kDTypes[] = {{"float", DTypeSet::Float},     {"int", DTypeSet::Int},       {"bool", DTypeSet::Bool},
                                      {"intbool", DTypeSet::IntBool}, {"number", DTypeSet::Number}, {"any", DTypeSet::Any}};
constexpr Word<ResultRule> kResults[] = {{"default", ResultRule::Default},         {"no_opmath", ResultRule::NoOpmath},
                                         {"int_to_float", ResultRule::IntToFloat}, {"always_bool", ResultRule::AlwaysBool},
                                         {"bool_to_long", ResultRule::BoolToLong}, {"complex_to_float", ResultRule::ComplexToFloat},
                                         {"same", ResultRule::Same},               {"attr:dtype", ResultRule::AttrDType},
                                         {"long", ResultRule::Long}};
constexpr std::string_view kKeys[] = {"op",      "targets", "params",    "args", "numbers",  "kind",   "outputs", "dtypes",  "result",        "expr", "cuda", "host",
                                      "pre",     "init",    "fold",      "post", "arg_state", "via",   "fallback", "writes", "check",         "strides", "metadata_only", "cost"};
constexpr std::string_view kStrideRules[] = {"iterator", "contiguous", "like_self", "view", "channels"};

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool contains(const std::vector<std::string>& list, std::string_view item) { return std::find(list.begin(), list.end(), item) != list.end(); }

/// One row's JSON with its name, so that every complaint says whose it is.
class RowReader {
 public:
  RowReader(const Json& json, std::string_view source) : json_(json), source_(source) {
    FXF_CHECK(json.is_object(), Value, "{}: a row is not an object: {}", source, json.dump());
    FXF_CHECK(json.contains("op") && json["op"].is_string(), Value, "{}: a row without a name (op): {}", source, json.dump().substr(0, 120));
    row_.op = json["op"].get<std::string>();
  }

  std::unique_ptr<OpRow> run() {
    for (const auto& item : json_.items()) {
      check(std::find(std::begin(kKeys), std::end(kKeys), item.key()) != std::end(kKeys), "unknown key '{}'", item.key());
    }
    row_.kind = word("kind", kKinds, true, OpKind::Pointwise);
    row_.dtypes = word("dtypes", kDTypes, false, DTypeSet::Any);
    row_.result = word("result", kResults, row_.kind == OpKind::Pointwise, ResultRule::Default);
    read_targets();
    read_params();
    read_defaults();
    read_lists();
    read_expressions();
    read_rest();
    return std::make_unique<OpRow>(std::move(row_));
  }

 private:
  template <typename... Args>
  void check(bool condition, fmt::format_string<Args...> format, Args&&... args) const {
    if (!condition) throw_error(ErrorKind::Value, fmt::format("{}: row {}: {}", source_, row_.op, fmt::format(format, std::forward<Args>(args)...)));
  }

  std::string text(const char* key) const {
    if (!json_.contains(key)) return {};
    check(json_[key].is_string(), "'{}' must be a string", key);
    return json_[key].get<std::string>();
  }

  bool flag(const char* key) const {
    if (!json_.contains(key)) return false;
    check(json_[key].is_boolean(), "'{}' must be true or false", key);
    return json_[key].get<bool>();
  }

  template <typename T, std::size_t N>
  T word(const char* key, const Word<T> (&words)[N], bool required, T fallback) const {
    if (!json_.contains(key)) {
      check(!required, "'{}' is missing", key);
      return fallback;
    }
    const std::string given = text(key);
    std::string known;
    for (const Word<T>& candidate : words) {
      if (candidate.text == given) return candidate.value;
      known += (known.empty() ? "" : ", ") + std::string(candidate.text);
    }
    check(false, "'{}' is not a {}: {}", given, key, known);
    return fallback;
  }

  Attr scalar(const Json& value) const {
    if (value.is_null()) return {};
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number_float()) return value.get<double>();
    if (value.is_string()) return value.get<std::string>();
    check(value.is_array(), "{} is not a plain value", value.dump());
    AttrList list;
    for (const Json& item : value) list.push_back(scalar(item));
    return list;
  }

  Attr fixed_value(const std::string& given) const {
    const Json value = Json::parse(given, nullptr, false);
    return value.is_discarded() ? Attr(given) : scalar(value);
  }

  void read_targets() {
    if (!json_.contains("targets")) return;  // primitives that only decompositions make
    check(json_["targets"].is_object(), "'targets' must be an object");
    for (const auto& item : json_["targets"].items()) {
      check(item.value().is_string(), "target {} must map to a string of argument names", item.key());
      OpTarget target;
      target.target = item.key();
      for (const std::string& token : split(item.value().get<std::string>())) {
        const std::size_t equal = token.find('=');
        if (equal != std::string::npos) {
          target.fixed[token.substr(0, equal)] = fixed_value(token.substr(equal + 1));
        } else if (token[0] == '!') {
          target.names.push_back("");
          target.must_default.push_back(fmt::format("{}:{}", target.names.size() - 1, token.substr(1)));
        } else {
          check(target.fixed.empty(), "target {}: '{}' stands after a fixed value", item.key(), token);
          target.names.push_back(token == "_" ? "" : token);
        }
      }
      row_.targets.push_back(std::move(target));
    }
  }

  void read_params() {
    if (json_.contains("params")) {
      row_.params = split(text("params"));
    } else {
      for (const OpTarget& target : row_.targets) {
        for (const std::string& name : target.names) {
          if (!name.empty() && !contains(row_.params, name)) row_.params.push_back(name);
        }
        for (const auto& item : target.fixed) {
          if (!contains(row_.params, item.first)) row_.params.push_back(item.first);
        }
      }
    }
    check(std::set<std::string>(row_.params.begin(), row_.params.end()).size() == row_.params.size(), "a parameter is named twice");
    for (const OpTarget& target : row_.targets) {
      for (const std::string& name : target.names) {
        check(name.empty() || contains(row_.params, name), "target {}: '{}' is not a parameter of the row", target.target, name);
      }
    }
  }

  void read_defaults() {
    if (!json_.contains("args")) return;
    check(json_["args"].is_object(), "'args' must be an object");
    for (const auto& item : json_["args"].items()) {
      if (!contains(row_.params, item.key())) row_.params.push_back(item.key());
      row_.defaults[item.key()] = scalar(item.value());
    }
  }

  std::vector<std::string> words_or_list(const char* key) const {
    if (!json_.contains(key)) return {};
    if (json_[key].is_string()) return split(text(key));
    check(json_[key].is_array(), "'{}' must be a list or a string of words", key);
    std::vector<std::string> out;
    for (const Json& item : json_[key]) {
      check(item.is_string(), "'{}' holds something that is not a string", key);
      out.push_back(item.get<std::string>());
    }
    return out;
  }

  void read_lists() {
    numbers_ = words_or_list("numbers");
    for (const std::string& name : numbers_) check(contains(row_.params, name), "number '{}' is not a parameter", name);
    row_.outputs = words_or_list("outputs");
    if (row_.outputs.empty()) row_.outputs = {"out"};
    row_.writes = words_or_list("writes");
    row_.checks = words_or_list("check");
  }

  Expr expression(const char* key, const std::vector<std::string>& holes) const {
    if (!json_.contains(key)) return {};
    try {
      return compile_expr(text(key), holes, row_.op);
    } catch (const Error& error) {
      throw_error(error.kind(), fmt::format("{}: {}", source_, error.what()));
    }
  }

  void read_expressions() {
    const bool both = json_.contains("expr");
    check(!both || (!json_.contains("cuda") && !json_.contains("host")), "'expr' stands beside 'cuda' or 'host'");
    row_.expr_cuda = expression(both ? "expr" : "cuda", row_.params);
    row_.expr_host = expression(both ? "expr" : "host", row_.params);
    const bool has_expression = !row_.expr_cuda.empty() || !row_.expr_host.empty();
    check(has_expression == (row_.kind == OpKind::Pointwise), "pointwise rows have an expression, and only they");
    for (const std::string& param : row_.params) {
      const auto used = [&](const Expr& expr) {
        return std::any_of(expr.begin(), expr.end(), [&](const ExprPiece& piece) { return piece.kind == ExprPiece::Kind::Hole && piece.text == param; });
      };
      if (!contains(numbers_, param) && (used(row_.expr_cuda) || used(row_.expr_host))) row_.tensor_params.push_back(param);
    }
    std::vector<std::string> with_state = row_.params;
    for (const char* name : {"self", "a", "b", "ai", "bi", "acc", "n"}) {
      if (!contains(with_state, name)) with_state.emplace_back(name);
    }
    row_.pre = expression("pre", with_state);
    row_.init = expression("init", with_state);
    row_.fold = expression("fold", with_state);
    row_.post = expression("post", with_state);
    row_.arg_state = flag("arg_state");
    const bool reduction = row_.kind == OpKind::Reduction;
    check(row_.fold.empty() != reduction && row_.init.empty() != reduction, "reductions have 'fold' and 'init', and only they");
  }

  void read_rest() {
    row_.via = text("via");
    check(row_.via.empty() == (row_.kind != OpKind::Composite), "composites have 'via', and only they");
    row_.fallback = text("fallback");
    row_.metadata_only = flag("metadata_only") || row_.kind == OpKind::View;
    row_.strides = json_.contains("strides") ? text("strides") : row_.kind == OpKind::Pointwise || row_.kind == OpKind::Cast ? "iterator" : row_.kind == OpKind::View ? "view" : "contiguous";
    check(std::find(std::begin(kStrideRules), std::end(kStrideRules), row_.strides) != std::end(kStrideRules), "'{}' is not a stride rule", row_.strides);
    if (json_.contains("cost")) {
      const Json& cost = json_["cost"];
      check(cost.is_array() && cost.size() == 2 && cost[0].is_number_integer() && cost[1].is_number_integer(), "'cost' must be [slots, special]");
      row_.cost_slots = cost[0].get<int>();
      row_.cost_special = cost[1].get<int>();
    }
  }

  const Json& json_;
  std::string_view source_;
  OpRow row_;
  std::vector<std::string> numbers_;
};

}  // namespace

std::vector<std::unique_ptr<OpRow>> load_rows(std::string_view text, std::string_view source) {
  const Json document = Json::parse(text, nullptr, false);
  FXF_CHECK(!document.is_discarded(), Value, "{}: not valid JSON", source);
  const Json* list = &document;
  if (document.is_object() && document.contains("rows")) list = &document["rows"];
  std::vector<std::unique_ptr<OpRow>> rows;
  if (list->is_object()) {
    rows.push_back(RowReader(*list, source).run());
    return rows;
  }
  FXF_CHECK(list->is_array(), Value, "{}: the rows must be a list", source);
  for (const Json& row : *list) rows.push_back(RowReader(row, source).run());
  return rows;
}

}  // namespace fxfuser::ir
