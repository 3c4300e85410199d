#pragma once
// The writes of a graph's inputs, which come after everything else, and version counters as eager's in-place ops leave them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "executor/step.h"
#include "partitioner/ir/graph.h"

namespace fxfuser::executor {

/// The graph's write-backs as steps. Those of one device, dtype and count of versions are one step, so that a model's running
/// statistics cost a few launches; what may share memory with an input is copied by itself, in the graph's order.
std::vector<WriteBackStep> write_back_steps(const ir::Graph& graph, const Slots& slots);

/// Copies each source into its target, in place of writes that raise each target's version by the step's `versions`.
void run_write_back(const WriteBackStep& step, const Slots& slots);

/// Raises a tensor's version counter; tensors of inference mode have none.
void raise_version(const at::Tensor& tensor, std::uint32_t times);

/// Copies `source` into the storage of `target` in place of writes that raise its version by `versions`.
void write_back(const at::Tensor& target, const at::Tensor& source, std::uint32_t versions);

}  // namespace fxfuser::executor
