#pragma once
// The writes of a graph's inputs, which come after everything else.

#include <vector>

#include "executor/step.h"
#include "partitioner/ir/graph.h"

namespace fxfuser::executor {

/// The graph's write-backs as steps. Those of one device and dtype are one step, so that a model's running statistics cost a few
/// launches; what may share memory with an input is copied by itself, in the graph's order.
std::vector<WriteBackStep> write_back_steps(const ir::Graph& graph, const Slots& slots);

/// Copies each source into its target.
void run_write_back(const WriteBackStep& step, const Slots& slots);

}  // namespace fxfuser::executor
