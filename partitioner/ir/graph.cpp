#include "partitioner/ir/graph.h"

#include <cmath>

#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/ir/text.h"

namespace fxfuser::ir {

bool Attr::is_number() const {
  return std::holds_alternative<bool>(v) || std::holds_alternative<std::int64_t>(v) || std::holds_alternative<double>(v) ||
         std::holds_alternative<std::complex<double>>(v);
}

double Attr::as_double() const {
  if (const auto* x = std::get_if<double>(&v)) return *x;
  if (const auto* x = std::get_if<std::int64_t>(&v)) return static_cast<double>(*x);
  if (const auto* x = std::get_if<bool>(&v)) return *x ? 1.0 : 0.0;
  FXF_CHECK(false, Type, "expected a real number, got {}", print(*this));
}

std::int64_t Attr::as_int() const {
  if (const auto* x = std::get_if<std::int64_t>(&v)) return *x;
  if (const auto* x = std::get_if<bool>(&v)) return *x ? 1 : 0;
  if (const auto* x = std::get_if<double>(&v)) {
    // A double that is an integer by value, and one that int64 holds (2^63 itself is out).
    if (std::trunc(*x) == *x && *x >= -0x1p63 && *x < 0x1p63) return static_cast<std::int64_t>(*x);
  }
  FXF_CHECK(false, Type, "expected an integer, got {}", print(*this));
}

bool Attr::as_bool() const {
  if (const auto* x = std::get_if<bool>(&v)) return *x;
  if (const auto* x = std::get_if<std::int64_t>(&v)) return *x != 0;
  FXF_CHECK(false, Type, "expected a bool, got {}", print(*this));
}

Sizes Attr::as_sizes() const {
  if (is_none()) return {};
  if (!is_list()) return {as_int()};
  Sizes sizes;
  sizes.reserve(list().size());
  for (const Attr& item : list()) sizes.push_back(item.as_int());
  return sizes;
}

ValueId Graph::add_value(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_input(std::string input_name, std::optional<TensorMeta> meta, ValueKind kind) {
  const ValueId id = add_value({kind, kNoNode, 0, std::move(meta), std::move(input_name)});
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string path, std::optional<TensorMeta> meta) {
  const ValueId id = add_value({ValueKind::Tensor, kNoNode, 0, std::move(meta), path});
  constants.push_back({id, std::move(path)});
  return id;
}

NodeId Graph::add_node(Node node, std::size_t output_count, ValueKind kind) {
  const auto id = static_cast<NodeId>(nodes.size());
  node.outputs.clear();
  for (std::size_t i = 0; i < output_count; ++i) {
    std::string value_name = output_count == 1 ? node.name : fmt::format("{}.{}", node.name, i);
    node.outputs.push_back(add_value({kind, id, static_cast<std::uint32_t>(i), std::nullopt, std::move(value_name)}));
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

namespace {

/// With a form: the argument at the position that the overload gives the param, else what the overload or row fixes.
const Attr& formed_arg(const Node& node, std::string_view param) {
  static const Attr none;
  const auto& names = node.form->names;
  for (std::size_t i = 0; i < names.size() && i < node.args.size(); ++i) {
    if (names[i] == param) return node.args[i];
  }
  if (const auto it = node.form->fixed.find(param); it != node.form->fixed.end()) return it->second;
  if (const auto it = node.row->defaults.find(param); it != node.row->defaults.end()) return it->second;
  return none;
}

}  // namespace

const Attr& arg(const Node& node, std::string_view param) {
  static const Attr none;
  FXF_ASSERT(node.row != nullptr, "{} ({}) has no row to name its argument {}", node.name, node.target, param);
  if (node.form != nullptr) return formed_arg(node, param);
  const auto& params = node.row->params;
  for (std::size_t i = 0; i < params.size() && i < node.args.size(); ++i) {
    if (params[i] == param) return node.args[i];
  }
  if (const auto it = node.row->defaults.find(param); it != node.row->defaults.end()) return it->second;
  return none;
}

}  // namespace fxfuser::ir
