#pragma once
// A partition on exact input metas -> a canonical graph of primitive rows only. After this no phase sees an ATen name.
//
// Primitives: every Pointwise, Reduction and Cast row; View rows permute(self, dims), reshape(self, shape),
// expand(self, shape), slice(self, dim, start, end, step), flip(self, dims); Position rows cat(tensors, dim),
// pad(self, widths, value); Indexed row index_read(self, index, dim, mode); Factory rows full(shape, value, dtype),
// index(shape, dim, dtype).  Explicit casts are kept; casts that a composite makes are Cast nodes as well.

#include <optional>
#include <string_view>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/partition.h"

namespace fxfuser::partitioner {

/// `metas[i]` is the exact meta of partition.inputs[i]. The result's inputs are the partition's inputs in order (Scalar
/// kind for numbers), its outputs the partition's outputs in order; each output value's meta is what eager would return
/// (dtype, sizes and strides); every other meta is exact in dtype and sizes.
/// `numbers[i]` (where given) is the value of a Scalar input that may be taken for a constant where a size, dim or index is
/// meant: the caller plans anew when it changes.
/// Throws Error(Value) for shapes eager refuses; Error(NotImplemented) for an argument form it does not know.
ir::Graph decompose(const ir::Graph& graph, const Partition& partition, const std::vector<ir::TensorMeta>& metas,
                    const ir::OpTable& table, const std::vector<std::optional<std::int64_t>>& numbers = {});

/// The words that a composite row's `via` may be, in order.
const std::vector<std::string_view>& decomposition_names();

/// CSE, dead nodes, no-op casts and views, folded constants; keeps inputs, outputs and their metas. (simplify.cpp)
ir::Graph simplify(const ir::Graph& canonical);

}  // namespace fxfuser::partitioner
