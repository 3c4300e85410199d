#pragma once
// What a graph is known to hold (metas from tracing, or from an earlier run), and what a call with other inputs would find.

#include <optional>
#include <span>
#include <vector>

#include "partitioner/ir/graph.h"

namespace fxfuser::executor {

/// Metas of a graph's inputs, its constants after them; none where something is no tensor.
using InputMetas = std::vector<std::optional<ir::TensorMeta>>;

/// The value of input `i`; the graph's constants come after its inputs.
inline ir::ValueId input_at(const ir::Graph& graph, std::size_t i) { return i < graph.inputs.size() ? graph.inputs[i] : graph.constants.at(i - graph.inputs.size()).value; }

/// Do the metas of the graph's inputs agree with these in what verdicts depend on (dtype, rank, device and memory order), and
/// has every value a meta?
bool forecast_fits(const ir::Graph& graph, const InputMetas& inputs);

/// `graph` as a call with these inputs would find it, without one: with the inner metas that ATen's meta kernels say. Where
/// they say nothing, inner values keep their forecast, on the device where their inputs are now.
ir::Graph with_inputs(const ir::Graph& graph, const InputMetas& inputs);

/// Where a node computes: the device of its tensors, those on the CPU last (of no dims, they count as numbers elsewhere).
template <typename DeviceOf>
std::optional<ir::Device> home_of(const ir::Node& node, DeviceOf&& device_of) {
  std::optional<ir::Device> home;
  ir::for_each_value(node.args, [&](ir::ValueId value) {
    const std::optional<ir::Device> device = device_of(value);
    if (device && (!home || (home->kind == ir::DeviceKind::Cpu && device->kind != ir::DeviceKind::Cpu))) home = device;
  });
  return home;
}

}  // namespace fxfuser::executor
