#include "partitioner/capability.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "partitioner/checks.h"
#include "partitioner/decompose.h"
#include "partitioner/ir/error.h"
#include "partitioner/phase.h"

namespace fxfuser::embedded {
std::string_view capability_json();
}

namespace fxfuser::partitioner {
namespace {

using Json = nlohmann::json;

// --- the policy file -----------------------------------------------------------------------------------------------------

std::vector<std::string> read_words(const Json& json, std::string_view key, std::string_view source) {
  FXF_CHECK(json.is_array(), Value, "{}: \"{}\" must be a list", source, key);
  std::vector<std::string> words;
  for (const Json& item : json) {
    FXF_CHECK(item.is_string(), Value, "{}: \"{}\" must hold strings, but holds {}", source, key, item.dump());
    words.push_back(item.get<std::string>());
  }
  return words;
}

ir::DType read_dtype(const std::string& word, std::string_view key, std::string_view source) {
  const auto dtype = ir::parse_dtype(word);
  FXF_CHECK(dtype && *dtype != ir::DType::Other, Value, "{}: \"{}\" names an unknown dtype \"{}\"", source, key, word);
  return *dtype;
}

std::set<ir::DType> read_dtypes(const Json& json, std::string_view key, std::string_view source) {
  std::set<ir::DType> dtypes;
  for (const std::string& word : read_words(json, key, source)) dtypes.insert(read_dtype(word, key, source));
  return dtypes;
}

std::set<std::pair<ir::DType, ir::DType>> read_casts(const Json& json, std::string_view key, std::string_view source) {
  FXF_CHECK(json.is_array(), Value, "{}: \"{}\" must be a list", source, key);
  std::set<std::pair<ir::DType, ir::DType>> casts;
  for (const Json& item : json) {
    const auto words = read_words(item, key, source);
    FXF_CHECK(words.size() == 2, Value, "{}: \"{}\" must hold pairs, but holds {}", source, key, item.dump());
    casts.emplace(read_dtype(words[0], key, source), read_dtype(words[1], key, source));
  }
  return casts;
}

std::set<ir::DeviceKind> read_devices(const Json& json, std::string_view key, std::string_view source) {
  std::set<ir::DeviceKind> devices;
  for (const std::string& word : read_words(json, key, source)) {
    FXF_CHECK(word == "cpu" || word == "cuda", Value, "{}: \"{}\" names \"{}\"; there are cpu and cuda", source, key, word);
    devices.insert(word == "cpu" ? ir::DeviceKind::Cpu : ir::DeviceKind::Cuda);
  }
  return devices;
}

// --- verdicts ------------------------------------------------------------------------------------------------------------

bool in_set(ir::DTypeSet set, ir::DType dtype) {
  const bool real = ir::is_floating(dtype), integer = ir::is_integral(dtype), boolean = dtype == ir::DType::Bool;
  switch (set) {
    case ir::DTypeSet::Float: return real;
    case ir::DTypeSet::Int: return integer;
    case ir::DTypeSet::Bool: return boolean;
    case ir::DTypeSet::IntBool: return integer || boolean;
    case ir::DTypeSet::Number: return real || integer;
    case ir::DTypeSet::Any: return real || integer || boolean;
  }
  return false;
}

/// "aten.add.Tensor" -> "aten.add"
std::string_view packet_of(std::string_view target) {
  const auto dot = target.rfind('.');
  return dot == std::string_view::npos ? target : target.substr(0, dot);
}

bool writes_in_place(std::string_view target) {
  const std::string_view packet = packet_of(target);
  return packet.size() > 1 && packet.back() == '_' && packet[packet.size() - 2] != '_';
}

bool named_in(const std::set<std::string>& names, const ir::Node& node) {
  if (names.empty()) return false;
  return names.contains(node.target) || names.contains(std::string(packet_of(node.target))) ||
         (node.row != nullptr && names.contains(node.row->op));
}

bool same_place(const ir::Device& a, const ir::Device& b) {
  return a.kind == b.kind && (a.index == b.index || a.index < 0 || b.index < 0);
}

/// Ignored arguments that change the meaning when given: only their default is covered.
Support check_ignored(const ir::Graph& graph, const ir::Node& node) {
  if (node.form == nullptr || node.form->must_default.empty()) return Support::yes();
  const ir::Device device = device_of(graph, node);
  for (std::size_t i = 0; i < node.form->must_default_at.size(); ++i) {
    const std::size_t at = node.form->must_default_at[i];
    if (at >= node.args.size() || is_default_argument(node.args[at], device)) continue;
    return Support::no(ReasonCode::Argument,
                       fmt::format("{} takes {} at its default only", node.target, node.form->must_default[i]));
  }
  return Support::yes();
}

/// Integer operands beside the first (an index, a class number) are the business of the row's decomposition.
bool takes_side_operands(const ir::OpRow& row) {
  return row.kind == ir::OpKind::Indexed || row.kind == ir::OpKind::Composite;
}

bool moves_only(const ir::OpRow& row) {
  return row.metadata_only || row.kind == ir::OpKind::Cast ||
         std::find(row.checks.begin(), row.checks.end(), "cast_pair") != row.checks.end();
}

}  // namespace

std::string_view embedded_capability_json() { return embedded::capability_json(); }

CapabilityTable CapabilityTable::from_json(std::string_view text, std::string_view source, std::string_view mode) {
  const Json json = Json::parse(text, nullptr, false);
  FXF_CHECK(!json.is_discarded(), Value, "{}: not JSON", source);
  FXF_CHECK(json.is_object() && json.size() == 1 && json.contains("modes") && json["modes"].is_object(), Value,
            "{}: expected one object with the key \"modes\"", source);
  const Json& modes = json["modes"];
  FXF_CHECK(modes.contains(mode) && modes[mode].is_object(), Value, "{}: there is no mode \"{}\"", source, mode);

  CapabilityTable table;
  for (const auto& [key, value] : modes[mode].items()) {
    if (key == "devices") table.devices_ = read_devices(value, key, source);
    else if (key == "dtypes") table.dtypes_ = read_dtypes(value, key, source);
    else if (key == "storage_dtypes") table.storage_dtypes_ = read_dtypes(value, key, source);
    else if (key == "denied_casts") table.denied_casts_ = read_casts(value, key, source);
    else if (key == "denied_ops") {
      for (std::string& word : read_words(value, key, source)) table.denied_ops_.insert(std::move(word));
    } else {
      throw_error(ErrorKind::Value, fmt::format("{}: mode \"{}\" has an unknown key \"{}\"", source, mode, key));
    }
  }
  FXF_CHECK(!table.devices_.empty() && !table.dtypes_.empty(), Value, "{}: mode \"{}\" needs devices and dtypes", source, mode);
  for (const auto& [name, check] : builtin_checks()) table.register_check(std::string(name), check);
  for (const auto& [name, check] : row_checks()) table.register_check(std::string(name), check);
  return table;
}

void CapabilityTable::register_check(std::string name, Check check) { checks_[std::move(name)] = std::move(check); }

void CapabilityTable::validate(const ir::OpTable& table, const ir::OpTable* present) const {
  const std::vector<std::string_view>& decompositions = decomposition_names();
  for (const auto& row : table.rows()) {
    for (const std::string& check : row->checks) {
      FXF_CHECK(checks_.contains(check), Value, "row \"{}\": unknown check \"{}\"; there are {}", row->op, check, fmt::join(std::views::keys(checks_), ", "));
    }
    FXF_CHECK(row->via.empty() || std::binary_search(decompositions.begin(), decompositions.end(), row->via), Value,
              "row \"{}\": unknown via \"{}\"; there are {}", row->op, row->via, fmt::join(decompositions, ", "));
    const bool known = row->functional.empty() || table.find(row->functional) != nullptr || (present != nullptr && present->find(row->functional) != nullptr);
    FXF_CHECK(known, Value, "row \"{}\": functional \"{}\" is not the name of a row", row->op, row->functional);
  }
}

Support CapabilityTable::check_policy(const ir::Node& node, const std::set<std::string>& skip) const {
  if (named_in(skip, node)) return Support::no(ReasonCode::Denied, fmt::format("{} is in skip_ops", node.target));
  if (named_in(denied_ops_, node)) return Support::no(ReasonCode::Denied, fmt::format("the policy denies {}", node.target));
  if (node.kind == ir::NodeKind::Scalar) {
    return Support::no(ReasonCode::NoRow, fmt::format("{} works on numbers, not on tensors", node.target));
  }
  if (node.kind == ir::NodeKind::Callable) {
    return Support::no(ReasonCode::NoRow, fmt::format("{} is a Python callable, not an op", node.target));
  }
  if (node.row == nullptr) {
    if (writes_in_place(node.target)) {
      return Support::no(ReasonCode::NotProvablySafe, fmt::format("{} writes in place", node.target));
    }
    return Support::no(ReasonCode::NoRow, fmt::format("no row names {}", node.target));
  }
  if (has_hidden_writes(node)) {
    return Support::no(ReasonCode::NotProvablySafe,
                       fmt::format("{} also writes {}", node.target, fmt::join(node.row->writes, ", ")));
  }
  return Support::yes();
}

Support CapabilityTable::check_dtype(const ir::OpRow& row, ir::DType dtype, std::string_view value) const {
  if (dtypes_.contains(dtype)) return Support::yes();
  if (!storage_dtypes_.contains(dtype)) {
    return Support::no(ReasonCode::DType, fmt::format("{} is {}, which the policy leaves to ATen", value, ir::name(dtype)));
  }
  if (moves_only(row)) return Support::yes();
  return Support::no(ReasonCode::DType, fmt::format("{} is {}, which is only cast, not computed in", value, ir::name(dtype)));
}

Support CapabilityTable::check_operands(const ir::Graph& graph, const ir::Node& node) const {
  const ir::OpRow& row = *node.row;
  Support verdict;
  bool first = true;
  ir::for_each_value(node.args, [&](ir::ValueId id) {
    const ir::Value& value = graph.values[id];
    if (!verdict.ok() || value.kind == ir::ValueKind::Scalar) return;
    if (value.kind == ir::ValueKind::Other) {
      verdict = Support::no(ReasonCode::Argument, fmt::format("{} is neither a tensor nor a number", value.name));
    } else if (!value.meta) {
      verdict = Support::no(ReasonCode::Layout, fmt::format("{} has no tensor meta", value.name));
    } else {
      const ir::DType dtype = value.meta->dtype;
      const bool side = !first && takes_side_operands(row) && (ir::is_integral(dtype) || dtype == ir::DType::Bool);
      first = false;
      verdict = check_dtype(row, dtype, value.name);
      if (verdict.ok() && !side && !in_set(row.dtypes, dtype)) {
        verdict = Support::no(ReasonCode::DType, fmt::format("{} does not take {}, which {} is", row.op, ir::name(dtype), value.name));
      }
    }
  });
  if (!verdict.ok()) return verdict;
  for (const std::string& param : row.tensor_params) {
    const ir::Attr& attr = ir::arg(node, param);
    if (std::holds_alternative<std::complex<double>>(attr.v)) {
      return Support::no(ReasonCode::DType, fmt::format("{} of {} is a complex number", param, row.op));
    }
    const bool whole = row.dtypes == ir::DTypeSet::Int || row.dtypes == ir::DTypeSet::IntBool || row.dtypes == ir::DTypeSet::Bool;
    if (whole && std::holds_alternative<double>(attr.v)) {
      return Support::no(ReasonCode::DType, fmt::format("{} of {} is a float", param, row.op));
    }
  }
  if (row.kind != ir::OpKind::Pointwise) return Support::yes();
  for (const std::string& param : row.params) {
    // What is no operand is written into the kernel's text.
    if (std::find(row.tensor_params.begin(), row.tensor_params.end(), param) == row.tensor_params.end() && ir::arg(node, param).is_value()) {
      return Support::no(ReasonCode::Argument, fmt::format("{} of {} is known only at the call", param, row.op));
    }
  }
  return Support::yes();
}

Support CapabilityTable::check_results(const ir::Graph& graph, const ir::Node& node) const {
  if (node.outputs.empty()) return Support::no(ReasonCode::Empty, fmt::format("{} returns nothing", node.target));
  const bool some = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId id) { return graph.values[id].meta.has_value(); });
  for (const ir::ValueId id : node.outputs) {
    const ir::Value& value = graph.values[id];
    if (!value.meta) {
      if (some) continue;  // a gradient that was masked out
      return Support::no(ReasonCode::Layout, fmt::format("the result of {} has no tensor meta", node.name));
    }
    Support verdict = check_dtype(*node.row, value.meta->dtype, value.name);
    if (!verdict.ok()) return verdict;
  }
  return Support::yes();
}

/// All tensors on one device that a target exists for; a 0-dim CPU tensor beside others is read as a number.
Support CapabilityTable::check_devices(const ir::Graph& graph, const ir::Node& node) const {
  const ir::Device home = device_of(graph, node);
  if (!devices_.contains(home.kind)) {
    return Support::no(ReasonCode::Device, fmt::format("there is no target for {}", ir::to_string(home)));
  }
  const bool on_host = home.kind == ir::DeviceKind::Cpu;
  if (node.row->kind == ir::OpKind::Pointwise && (on_host ? node.row->expr_host : node.row->expr_cuda).empty()) {
    return Support::no(ReasonCode::Device, fmt::format("the row {} has no expression for {}", node.row->op, on_host ? "the host" : "CUDA"));
  }
  Support verdict;
  const auto visit = [&](ir::ValueId id) {
    const ir::Value& value = graph.values[id];
    if (!verdict.ok() || !value.meta || same_place(value.meta->device, home)) return;
    if (value.meta->sizes.empty() && value.meta->device.kind == ir::DeviceKind::Cpu) return;
    verdict = Support::no(ReasonCode::Device, fmt::format("{} is on {}, {} works on {}", value.name,
                                                          ir::to_string(value.meta->device), node.name, ir::to_string(home)));
  };
  ir::for_each_value(node.args, visit);
  return verdict;
}

Support CapabilityTable::check_casts(const ir::Graph& graph, const ir::Node& node) const {
  if (node.row->kind != ir::OpKind::Cast && !moves_only(*node.row)) return Support::yes();
  std::optional<ir::DType> from;
  ir::for_each_value(node.args, [&](ir::ValueId id) {
    if (!from && graph.values[id].meta) from = graph.values[id].meta->dtype;
  });
  const auto& to = graph.values[node.outputs[0]].meta;
  if (!from || !to || !denied_casts_.contains({*from, to->dtype})) return Support::yes();
  return Support::no(ReasonCode::DType, fmt::format("{} -> {} is not in the cast table", ir::name(*from), ir::name(to->dtype)));
}

Support CapabilityTable::classify(const ir::Graph& graph, const ir::Node& node, const std::set<std::string>& skip) const {
  Support verdict = check_policy(node, skip);
  if (verdict.ok()) verdict = check_operands(graph, node);
  if (verdict.ok()) verdict = check_results(graph, node);
  if (verdict.ok()) verdict = check_devices(graph, node);
  if (verdict.ok()) verdict = check_casts(graph, node);
  if (verdict.ok()) verdict = check_ignored(graph, node);
  for (const std::string& name : node.row != nullptr ? node.row->checks : std::vector<std::string>{}) {
    if (!verdict.ok()) break;
    const auto at = checks_.find(name);
    FXF_CHECK(at != checks_.end(), Value, "row \"{}\": unknown check \"{}\"", node.row->op, name);
    verdict = at->second(graph, node);
  }
  return verdict;
}

std::vector<Support> CapabilityTable::classify_all(const ir::Graph& graph, const std::set<std::string>& skip) const {
  std::vector<Support> verdicts;
  verdicts.reserve(graph.nodes.size());
  for (const ir::Node& node : graph.nodes) verdicts.push_back(classify(graph, node, skip));
  return verdicts;
}

}  // namespace fxfuser::partitioner
