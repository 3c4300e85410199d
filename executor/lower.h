#pragma once
// Graph -> verdicts, partitions and the order of units: everything that holds for a class of inputs (dtypes, ranks, devices,
// options), before any size is looked at. And one partition on exact metas -> kernel texts.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/segment.h"
#include "executor/session.h"
#include "partitioner/partition.h"

namespace fxfuser::executor {

/// A step of the lowered graph: a partition, or a node that runs by itself.
struct Unit {
  std::int32_t partition = -1;     // index, or -1
  ir::NodeId node = ir::kNoNode;   // where partition is -1
};

struct LoweredGraph {
  ir::Graph graph;                               // functional, metas of this class
  std::vector<partitioner::Support> support;     // by node; pruned nodes carry their reason
  std::vector<partitioner::Partition> partitions;
  std::vector<std::int32_t> partition_of;        // by node, -1
  std::vector<std::uint32_t> twin_of;            // by partition: see twins_of
  std::vector<Unit> units;                       // in an order in which they can run
  double partition_seconds = 0;
};

/// By value: the last unit that makes or reads it; nullopt where none does.
std::vector<std::optional<std::uint32_t>> last_units(const LoweredGraph& lowered);

/// infer/classify -> propose -> prune -> order. `graph` must carry metas for this class.
LoweredGraph lower(Session& session, ir::Graph graph, const Options& options);

/// One partition as kernels.
struct GroupPlan {
  ir::Graph canonical;
  codegen::Segmented segmented;
  std::vector<codegen::KernelSource> sources;  // one a segment
  std::optional<partitioner::Reason> refusal;  // set: the partition runs through ATen
};

/// decompose -> simplify -> segment -> schedule -> emit, on the exact metas of the partition's inputs, and on those numbers among
/// them that the plan's key holds, for the partition's device or another `machine`. Shapes that eager refuses
/// and forms that no decomposition takes become a refusal.
GroupPlan plan_group(Session& session, const LoweredGraph& lowered, std::size_t partition, const std::vector<ir::TensorMeta>& metas,
                     const std::vector<int>& alignment, const Options& options, const std::vector<std::optional<std::int64_t>>& numbers = {}, const codegen::ArchInfo* machine = nullptr);

}  // namespace fxfuser::executor
