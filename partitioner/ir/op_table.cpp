#include "partitioner/ir/op_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "partitioner/ir/error.h"
#include "partitioner/ir/row_loader.h"

namespace fxfuser::embedded {
extern std::string_view ops_json();
}  // namespace fxfuser::embedded

namespace fxfuser::ir {
namespace {

using Json = nlohmann::ordered_json;  // the order of targets is the default order of parameters

/// Parses, refusing a key that is given twice in one object (the library would keep one of them without a word).
Json parse(std::string_view text, std::string_view source) {
  std::vector<std::set<std::string>> open;
  const Json::parser_callback_t watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      FXF_CHECK(open.back().insert(key).second, Value, "{}: key '{}' is given twice in one object", source, key);
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const nlohmann::json::parse_error& error) {
    throw_error(ErrorKind::Value, fmt::format("{}: not JSON: {}", source, error.what()));
  }
}

Attr text_value(const std::string& text, std::string_view row) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (!text.starts_with("torch.")) return text;
  const auto dtype = parse_dtype(text);
  FXF_CHECK(dtype.has_value(), Value, "row '{}': unknown dtype '{}'", row, text);
  return *dtype;
}

Attr to_attr(const Json& value, std::string_view row) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    FXF_CHECK(number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()), Value,
              "row '{}': {} does not fit 64 bits", row, number);
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_string()) return text_value(value.get<std::string>(), row);
  FXF_CHECK(value.is_array(), Value, "row '{}': {} is not a value (a scalar or a list)", row, value.dump());
  AttrList list;
  for (const Json& item : value) list.push_back(to_attr(item, row));
  return list;
}

/// `name=value` in an argument string: JSON, where a bare word is taken as a string.
Attr read_value(std::string_view text, std::string_view row) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? text_value(std::string(text), row) : to_attr(value, row);
}

class FieldReader {
 public:
  FieldReader(const Json& row, std::string_view source) : row_(row), source_(source) {}

  RowFields run() {
    FXF_CHECK(row_.is_object(), Value, "{}: a row must be an object, got {}", source_, row_.dump().substr(0, 80));
    FXF_CHECK(row_.contains("op") && row_["op"].is_string(), Value, "{}: a row without 'op': {}", source_,
              row_.dump().substr(0, 80));
    fields_.op = row_["op"].get<std::string>();
    for (const auto& [key, value] : row_.items()) read(key, value);
    return std::move(fields_);
  }

 private:
  void check(bool condition, std::string_view key, std::string_view what) const {
    FXF_CHECK(condition, Value, "{}: row '{}', key '{}': {}", source_, fields_.op, key, what);
  }

  void read(const std::string& key, const Json& value) {
    if (key == "op") return;
    if (key == "targets") return read_targets(value);
    if (key == "args") return read_args(value);
    if (key == "schemas") return read_schemas(value);
    if (key == "cost") return read_cost(value);
    if (key == "arg_state" || key == "metadata_only") {
      check(value.is_boolean(), key, "must be true or false");
      fields_.flags[key] = value.get<bool>();
      return;
    }
    const auto& known = text_keys();
    check(std::find(known.begin(), known.end(), key) != known.end(), key, "unknown key");
    fields_.words[key] = read_text(key, value);
  }

  std::string read_text(const std::string& key, const Json& value) const {
    if (value.is_string()) return value.get<std::string>();
    if (key == "init" && value.is_number()) return value.dump();
    check(value.is_array(), key, "must be a string (or a list of strings)");
    std::string joined;
    for (const Json& item : value) {
      check(item.is_string(), key, "must be a string (or a list of strings)");
      if (!joined.empty()) joined += ' ';
      joined += item.get<std::string>();
    }
    return joined;
  }

  void read_targets(const Json& value) {
    check(value.is_object(), "targets", "must be an object: target -> argument string");
    for (const auto& [target, arguments] : value.items()) {
      check(arguments.is_string(), "targets", "must map each target to its argument string");
      fields_.targets.emplace_back(target, arguments.get<std::string>());
    }
  }

  void read_schemas(const Json& value) {
    check(value.is_object(), "schemas", "must be an object: target -> schema");
    for (const auto& [target, schema] : value.items()) {
      check(schema.is_string(), "schemas", "must map a target to its schema");
      fields_.schemas[target] = schema.get<std::string>();
    }
  }

  void read_args(const Json& value) {
    check(value.is_object(), "args", "must be an object: parameter -> default");
    for (const auto& [name, item] : value.items()) fields_.args[name] = to_attr(item, fields_.op);
  }

  void read_cost(const Json& value) {
    const bool good = value.is_array() && value.size() == 2 && value[0].is_number_integer() && value[1].is_number_integer();
    check(good, "cost", "must be [slots, special]");
    fields_.cost = std::pair(value[0].get<int>(), value[1].get<int>());
  }

  const Json& row_;
  std::string_view source_;
  RowFields fields_;
};

/// The rows of a document: {"rows": [...]}, a list, or one row.
std::vector<Json> rows_of(const Json& document, std::string_view source) {
  if (document.is_array()) {
    FXF_CHECK(!document.empty(), Value, "{}: no rows; expected one row or a list of them", source);
    return document.get<std::vector<Json>>();
  }
  FXF_CHECK(document.is_object(), Value, "{}: expected an object or a list of rows", source);
  if (!document.contains("rows")) return {document};
  for (const auto& [key, value] : document.items()) {
    FXF_CHECK(key == "rows" || key == "$schema" || key == "comment", Value, "{}: unknown key '{}'", source, key);
  }
  FXF_CHECK(document["rows"].is_array(), Value, "{}: key 'rows' must be a list", source);
  return rows_of(document["rows"], source);
}

}  // namespace

std::string_view embedded_ops_json() { return embedded::ops_json(); }

OpTable OpTable::from_json(std::string_view text, std::string_view source, const RowFunctions& functions) {
  OpTable table;
  table.add_json(text, source, functions);
  return table;
}

void OpTable::add_json(std::string_view text, std::string_view source, const RowFunctions& functions) {
  std::vector<std::unique_ptr<OpRow>> fresh;
  std::set<std::string> ops;
  std::set<std::string> targets;
  for (const Json& json : rows_of(parse(text, source), source)) {
    auto row = std::make_unique<OpRow>(load_row(FieldReader(json, source).run(), read_value, functions));
    FXF_CHECK(ops.insert(row->op).second && find(row->op) == nullptr, Value, "{}: row '{}', key 'op': there is such a row already",
              source, row->op);
    for (const OpTarget& target : row->targets) {
      const OpRow* other = find_target(target.target).first;
      FXF_CHECK(targets.insert(target.target).second && other == nullptr, Value,
                "{}: row '{}', key 'targets': '{}' belongs to {} already", source, row->op, target.target,
                other != nullptr ? fmt::format("row '{}'", other->op) : "another row of this text");
    }
    fresh.push_back(std::move(row));
  }
  for (const auto& [key, member] : {std::pair("cuda_source", &RowFunctions::cuda), std::pair("host_source", &RowFunctions::host)}) {
    const bool called = (functions.*member).empty() || std::any_of(fresh.begin(), fresh.end(), [&, at = member](const auto& row) { return !(row->functions.*at).empty(); });
    FXF_CHECK(called, Value, "{}: no row calls a function of {}", source, key);
  }
  for (auto& row : fresh) {  // nothing below can refuse: a bad row leaves the table as it was
    by_name_.emplace(row->op, row.get());
    for (const OpTarget& target : row->targets) {
      by_target_.emplace(target.target, std::pair(row.get(), &target));
      packets_.insert(target.target.substr(0, target.target.rfind('.')));
    }
    rows_.push_back(std::move(row));
  }
}

const OpRow* OpTable::find(std::string_view op) const {
  const auto it = by_name_.find(op);
  return it == by_name_.end() ? nullptr : it->second;
}

std::pair<const OpRow*, const OpTarget*> OpTable::find_target(std::string_view target) const {
  const auto it = by_target_.find(std::string(target));
  return it == by_target_.end() ? std::pair<const OpRow*, const OpTarget*>{} : it->second;
}

bool OpTable::is_named(std::string_view word) const { return find(word) != nullptr || find_target(word).first != nullptr || packets_.contains(word); }

void OpTable::bind(Graph& graph) const {
  constexpr std::string_view kCanonical = "fxf.";
  for (Node& node : graph.nodes) {
    node.row = nullptr;
    node.form = nullptr;
    if (node.kind != NodeKind::Op) continue;
    if (node.target.starts_with(kCanonical)) node.row = find(std::string_view(node.target).substr(kCanonical.size()));
    else std::tie(node.row, node.form) = find_target(node.target);
  }
}

}  // namespace fxfuser::ir
