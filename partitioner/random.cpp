#include "partitioner/random.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {
namespace {

using ir::Attr;

constexpr std::string_view kAten = "aten.";

bool is_off(const Attr& attr) { return attr.is_number() && !std::holds_alternative<std::complex<double>>(attr.v) && attr.as_double() == 0; }

/// The seeded form of a node that draws random numbers; nullptr where it has none or draws none.
const ir::OpTarget* seeded_form(const ir::Graph& graph, const ir::Node& node, const ir::OpTable& table) {
  if (node.kind != ir::NodeKind::Op || !node.target.starts_with(kAten) || node.outputs.empty() || !graph.value(node.outputs[0]).meta) return nullptr;
  const auto [row, form] = table.find_target("fxfuser.seeded_" + node.target.substr(kAten.size()));
  if (form == nullptr || form->names.size() != node.args.size() + 2) return nullptr;
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    if ((form->names[i] == "train" || form->names[i] == "p") && is_off(node.args[i])) return nullptr;
    if (std::holds_alternative<ir::Opaque>(node.args[i].v)) return nullptr;  // a generator
  }
  return form;
}

/// Puts a node that draws a seed in front; every id of a node rises by one.
ir::ValueId add_seed(ir::Graph& graph, const ir::Device& device) {
  const ir::ValueId seed = graph.add_value({});
  ir::Value& value = graph.values[seed];
  value.name = fmt::format("seed_{}", ir::to_string(device));
  value.meta = ir::contiguous(ir::DType::Int64, device, {});
  for (ir::Value& other : graph.values) {
    if (other.producer != ir::kNoNode) ++other.producer;
  }
  value.producer = 0;
  for (ir::Node& node : graph.nodes) {
    for (ir::NodeId& before : node.after) ++before;
  }
  for (ir::Write& write : graph.writes) ++write.node;
  ir::Node draw;
  draw.name = value.name;
  draw.target = "fxfuser.random_seed.default";
  draw.args = {device};
  draw.outputs = {seed};
  graph.nodes.insert(graph.nodes.begin(), std::move(draw));
  return seed;
}

}  // namespace

std::int64_t random_threshold(double probability) { return std::clamp<std::int64_t>(std::llround(std::ldexp(probability, 32)), 0, std::int64_t{1} << 32); }

int random_digits(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::Float64: return 53;
    case ir::DType::Float32: return 24;
    case ir::DType::Float16: return 11;
    case ir::DType::BFloat16: return 8;
    default: return 0;
  }
}

ir::Graph with_seeds(ir::Graph graph, const ir::OpTable& table) {
  std::map<std::string, ir::ValueId> seeds;  // by device
  std::int64_t number = 0;
  for (std::size_t at = 0; at < graph.nodes.size(); ++at) {
    const ir::OpTarget* form = seeded_form(graph, graph.nodes[at], table);
    if (form == nullptr) continue;
    const ir::TensorMeta meta = *graph.value(graph.nodes[at].outputs[0]).meta;
    auto found = seeds.find(ir::to_string(meta.device));
    if (found == seeds.end()) {
      found = seeds.emplace(ir::to_string(meta.device), add_seed(graph, meta.device)).first;
      ++at;
    }
    ir::Node& node = graph.nodes[at];
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (form->names[i] == "dtype" && node.args[i].is_none()) node.args[i] = meta.dtype;
    }
    node.target = form->target;
    node.args.emplace_back(ir::ValueRef{found->second});
    node.args.emplace_back(++number);
  }
  return graph;
}

}  // namespace fxfuser::partitioner
