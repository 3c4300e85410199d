#pragma once
// The metas of a graph for a class of inputs that it has no forecast for, by running it on meta tensors: shapes and dtypes come
// from ATen's own meta kernels, and no data is touched.

#include <ATen/core/ivalue.h>

#include <optional>
#include <span>

#include "executor/forecast.h"
#include "partitioner/ir/graph.h"

namespace fxfuser::executor {

/// `graph` (functional, rows bound) with kinds and metas for these inputs (its constants after them). nullopt where a node has
/// no meta kernel, reads data, or is a callable of the host: such a graph must run to be known.
std::optional<ir::Graph> propagate(const ir::Graph& graph, std::span<const c10::IValue> inputs);
/// For inputs that are not at hand. A graph that computes with its numbers is not known without them.
std::optional<ir::Graph> propagate(const ir::Graph& graph, const InputMetas& inputs);

}  // namespace fxfuser::executor
