#include "partitioner/ir/graph.h"

#include <algorithm>

#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::ir {

bool Attr::is_number() const {
  return std::holds_alternative<bool>(v) || std::holds_alternative<std::int64_t>(v) || std::holds_alternative<double>(v) ||
         std::holds_alternative<std::complex<double>>(v);
}

double Attr::as_double() const {
  if (const auto* number = std::get_if<double>(&v)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&v)) return static_cast<double>(*number);
  const auto* flag = std::get_if<bool>(&v);
  FXF_CHECK(flag != nullptr, Type, "an argument is not a real number");
  return *flag ? 1.0 : 0.0;
}

std::int64_t Attr::as_int() const {
  if (const auto* number = std::get_if<std::int64_t>(&v)) return *number;
  const auto* flag = std::get_if<bool>(&v);
  FXF_CHECK(flag != nullptr, Type, "an argument is not an integer");
  return *flag ? 1 : 0;
}

bool Attr::as_bool() const {
  if (const auto* flag = std::get_if<bool>(&v)) return *flag;
  const auto* number = std::get_if<std::int64_t>(&v);
  FXF_CHECK(number != nullptr, Type, "an argument is not a bool");
  return *number != 0;
}

Sizes Attr::as_sizes() const {
  if (is_none()) return {};
  if (!is_list()) return {as_int()};
  Sizes out;
  for (const Attr& item : list()) out.push_back(item.as_int());
  return out;
}

ValueId Graph::add_value(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_input(std::string input_name, std::optional<TensorMeta> meta, ValueKind kind) {
  Value value;
  value.kind = kind;
  value.meta = std::move(meta);
  value.name = std::move(input_name);
  inputs.push_back(add_value(std::move(value)));
  return inputs.back();
}

ValueId Graph::add_constant(std::string path, std::optional<TensorMeta> meta) {
  Value value;
  value.meta = std::move(meta);
  value.name = path;
  const ValueId id = add_value(std::move(value));
  constants.push_back({id, std::move(path)});
  return id;
}

NodeId Graph::add_node(Node node, std::size_t output_count, ValueKind kind) {
  const auto id = static_cast<NodeId>(nodes.size());
  node.outputs.clear();
  for (std::size_t i = 0; i < output_count; ++i) {
    Value value;
    value.kind = kind;
    value.producer = id;
    value.output = static_cast<std::uint32_t>(i);
    value.name = output_count == 1 ? node.name : fmt::format("{}_{}", node.name, i);
    node.outputs.push_back(add_value(std::move(value)));
  }
  nodes.push_back(std::move(node));
  return id;
}

std::vector<std::vector<NodeId>> users_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> users(graph.values.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    for_each_value(graph.nodes[id].args, [&](ValueId value) {
      if (users[value].empty() || users[value].back() != id) users[value].push_back(id);
    });
  }
  return users;
}

const Attr& arg(const Node& node, std::string_view param) {
  static const Attr none;
  if (node.form == nullptr) {
    if (node.row == nullptr) return none;
    const auto& params = node.row->params;
    const auto found = std::find(params.begin(), params.end(), param);
    const auto at = static_cast<std::size_t>(found - params.begin());
    if (found != params.end() && at < node.args.size()) return node.args[at];
  } else {
    if (const auto fixed = node.form->fixed.find(param); fixed != node.form->fixed.end()) return fixed->second;
    const auto& names = node.form->names;
    const auto found = std::find(names.begin(), names.end(), param);
    const auto at = static_cast<std::size_t>(found - names.begin());
    if (found != names.end() && at < node.args.size()) return node.args[at];
  }
  if (node.row != nullptr) {
    if (const auto fallback = node.row->defaults.find(param); fallback != node.row->defaults.end()) return fallback->second;
  }
  return none;
}

}  // namespace fxfuser::ir
