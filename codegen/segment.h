#pragma once
// A canonical graph -> segments that one kernel each can hold. One segment a node, merged along edges (and between readers
// of one input) by a queue of bytes saved, ties by id; a merge is taken when the merged set builds a fusion that a
// scheduler accepts and the order stays acyclic; cheap producers are copied into their consumers; size is bounded; failed
// pairs are not tried again.

#include <vector>

#include "codegen/arch.h"
#include "codegen/fusion.h"
#include "codegen/schedule.h"
#include "partitioner/ir/graph.h"
#include "partitioner/reason.h"

namespace fxfuser::codegen {

struct Segment {
  std::vector<ir::NodeId> nodes;      // ascending; a cheap producer may be in several segments
  std::vector<ir::ValueId> outputs;   // what it must store: values used by later segments or by the graph's outputs
  Fusion fusion;
  Schedule schedule;
  // A value that is a pure view of an input or of another segment's output is no segment's work: `views` below.
};

struct Segmented {
  std::vector<Segment> segments;  // in an order in which they can run
  // Graph outputs that are views (metadata only) of another value: handled by the caller without a kernel.
  std::vector<std::pair<ir::ValueId, ir::ValueId>> aliases;  // (output, source)
  std::optional<partitioner::Reason> refusal;  // set: some node could not be scheduled even alone; segments are empty
};

Segmented segment(const ir::Graph& canonical, const ArchInfo& arch, const ScheduleOptions& options);

}  // namespace fxfuser::codegen
