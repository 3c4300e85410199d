#pragma once
// Metas of the five view primitives and of the rows that read by position or index; internal to infer.

#include "partitioner/ir/graph.h"

namespace fxfuser::ir {

TensorMeta infer_view(const Graph& graph, const Node& node);
TensorMeta infer_position(const Graph& graph, const Node& node);
TensorMeta infer_indexed(const Graph& graph, const Node& node);
TensorMeta infer_factory(const Graph& graph, const Node& node);

/// A dim in [-rank, rank) as [0, rank); throws Error(Value) outside.
std::size_t wrap_dim(std::int64_t dim, std::size_t rank);
/// Strides that a view of `meta` to `sizes` has, nullopt when only a copy can have that shape.
std::optional<Sizes> view_strides(const TensorMeta& meta, const Sizes& sizes);
/// `sizes` with one -1 filled in from numel; throws Error(Value) when it does not fit.
Sizes resolve_shape(std::int64_t numel, Sizes sizes);

}  // namespace fxfuser::ir
