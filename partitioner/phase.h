#pragma once
// Phase labels: the number that makes grouping free of cycles. On every edge the label never falls, and it rises where an
// edge leaves an unsupported node for a supported one, joins two devices, or only orders two supported nodes. So supported
// nodes of one label and device that are joined by edges can run as one step, whatever else is grouped.
//
// Labels start at -1: an unsupported node that no supported node precedes delays nobody. Linear in nodes and edges.

#include <cstdint>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/reason.h"

namespace fxfuser::partitioner {

/// users[v]: the nodes that read value v, as ir::users_of gives them.
using Users = std::vector<std::vector<ir::NodeId>>;

struct PhaseLabels {
  std::vector<std::int32_t> phase;  // by node; >= 0 for supported nodes
  std::vector<ir::Device> device;   // by node: where its result lives
};

/// The device of a node: of its first output with a meta, else of its first tensor argument with one.
ir::Device device_of(const ir::Graph& graph, const ir::Node& node);

/// Bytes of a value by its forecast; 0 for numbers and where nothing is known.
std::int64_t bytes_of(const ir::Graph& graph, ir::ValueId value);

/// The earliest labels.
PhaseLabels earliest_phases(const ir::Graph& graph, const std::vector<Support>& support);

/// Earliest labels, then whole pieces of the graph moved to the latest label that their users allow where that moves fewer
/// bytes through memory (a mask made at the start and used at the end, say).
PhaseLabels label_phases(const ir::Graph& graph, const std::vector<Support>& support, const Users& users);

}  // namespace fxfuser::partitioner
