#include "executor/forecast.h"

#include <algorithm>

#include "executor/propagate.h"

namespace fxfuser::executor {
namespace {

bool names_device(const ir::Node& node) {
  return std::any_of(node.args.begin(), node.args.end(), [](const ir::Attr& attr) { return std::holds_alternative<ir::Device>(attr.v); });
}

/// Inner values follow the inputs to their devices.
ir::Graph with_devices(ir::Graph graph, const InputMetas& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) graph.values[input_at(graph, i)].meta = inputs[i];
  }
  for (const ir::Node& node : graph.nodes) {
    if (names_device(node)) continue;
    const auto home = home_of(node, [&](ir::ValueId id) { return graph.value(id).meta ? std::optional(graph.meta(id).device) : std::nullopt; });
    for (ir::ValueId output : node.outputs) {
      if (home && graph.values[output].meta) graph.values[output].meta->device = *home;
    }
  }
  return graph;
}

}  // namespace

bool forecast_fits(const ir::Graph& graph, const InputMetas& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& value = graph.value(input_at(graph, i));
    if (!inputs[i]) {
      if (value.kind == ir::ValueKind::Tensor) return false;
      continue;
    }
    if (value.kind != ir::ValueKind::Tensor || !value.meta) return false;
    if (inputs[i]->dtype != value.meta->dtype || inputs[i]->rank() != value.meta->rank() || inputs[i]->device != value.meta->device) return false;
    if (ir::memory_order(*inputs[i]) != ir::memory_order(*value.meta)) return false;
  }
  return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return node.outputs.size() != 1 || graph.value(node.outputs[0]).kind != ir::ValueKind::Tensor || graph.value(node.outputs[0]).meta.has_value();
  });
}

ir::Graph with_inputs(const ir::Graph& graph, const InputMetas& inputs) {
  bool same = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) same = same && (!inputs[i] || inputs[i] == graph.value(input_at(graph, i)).meta);
  if (same) return graph;
  if (std::optional<ir::Graph> exact = propagate(graph, inputs)) return *std::move(exact);
  return with_devices(graph, inputs);
}

}  // namespace fxfuser::executor
