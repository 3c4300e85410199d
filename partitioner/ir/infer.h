#pragma once
// Output metas of a node from its row's shape, dtype and stride rules, on exact input metas. The one place that knows
// eager's result types; checked against ATen for every row by tests/python/test_ops_table.py.

#include <string>
#include <variant>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::ir {

struct Inferred {
  std::vector<TensorMeta> outputs;
  DType compute = DType::Float32;  // the dtype the operands are promoted to (before widening to the register type)
};

/// Infers a canonical node (any kind but Composite). Every tensor argument's meta must be exact. Sizes and dtypes follow
/// PyTorch, strides eager's rule for that row (views: PyTorch's view strides; a reshape that eager must copy: contiguous).
/// Throws Error(Value) on shapes that eager refuses. Composites get their metas from decompose.
Inferred infer(const Graph& graph, const Node& node);

/// The promoted dtype of tensor and number operands (PyTorch's dimension > 0-dim > number categories).
DType promote_operands(const Graph& graph, const std::vector<Attr>& operands);
/// Strides of an elementwise result by TensorIterator's rule over its tensor operands (as broadcast to `sizes`).
Sizes iterator_strides(const Sizes& sizes, const std::vector<const TensorMeta*>& operands);
/// Dense strides in the memory format that PyTorch sees in a tensor's strides: channels-last or contiguous.
Sizes memory_format_strides(const TensorMeta& meta);

}  // namespace fxfuser::ir
