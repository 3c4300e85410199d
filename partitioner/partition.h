#pragma once
// Groups of supported nodes that may run as one fused step without a cycle: a set of node ids and its ordered inputs and
// outputs, a view of the graph and never a copy. Linear in nodes and edges.
//
// phase(n) = max over predecessors, plus one where an edge leaves an unsupported node for a supported one or crosses
// devices (phase.h). Supported nodes of one phase and device can be grouped freely; connected parts, and parts that share
// an input, form a partition.

#include <cstdint>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/reason.h"

namespace fxfuser::partitioner {

struct Partition {
  std::vector<ir::NodeId> nodes;    // ascending
  std::vector<ir::ValueId> inputs;  // values read from outside, in order of first use
  std::vector<ir::ValueId> outputs; // values read outside (graph outputs and write-backs too), ascending
  ir::Device device;
  std::uint32_t phase = 0;
};

struct PartitionOptions {
  bool allow_single_op = true;
};

/// Groups the supported nodes. Deterministic; partitions come in an order in which they can run.
std::vector<Partition> propose(const ir::Graph& graph, const std::vector<Support>& support);

/// A partition that was dropped, or a border view peeled off one, with the reason.
struct Pruned {
  ir::NodeId node;
  Reason reason;
};

/// Drops metadata-only groups, peels views off the borders, and applies `allow_single_op`. Returns what was left out.
std::vector<Pruned> prune(const ir::Graph& graph, std::vector<Partition>& partitions, const PartitionOptions& options);

/// Recomputes inputs and outputs from nodes.
void set_borders(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users, Partition& partition);

}  // namespace fxfuser::partitioner
