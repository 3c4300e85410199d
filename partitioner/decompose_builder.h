#pragma once
// What the decompositions build with; internal. Every call appends a canonical node with its inferred meta and returns values
// of the graph under construction.

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/ir/infer.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::partitioner {

using ir::Attr;
using ir::DType;
using ir::Sizes;
using ir::ValueId;

class DecomposeBuilder {
 public:
  DecomposeBuilder(const ir::OpTable& table, ir::Graph& out) : table_(table), out_(out) {}

  ir::Graph& graph() { return out_; }
  const ir::TensorMeta& meta(ValueId value) const { return out_.meta(value); }
  /// The node being decomposed, its values already those of the new graph.
  void set_node(const ir::Node* node) { node_ = node; }
  const ir::Node& node() const { return *node_; }
  const Attr& arg(std::string_view param) const { return ir::arg(*node_, param); }
  bool has(std::string_view param) const { return !arg(param).is_none(); }
  ValueId tensor(std::string_view param) const;
  std::int64_t integer(std::string_view param, std::int64_t fallback) const;
  double real(std::string_view param, double fallback) const;
  bool flag(std::string_view param, bool fallback) const;
  /// A dim argument in [0, rank); 0 for rank 0.
  std::size_t dim(std::string_view param, std::size_t rank) const;

  /// A canonical node of row `op`; `args` in the row's params order (trailing ones may be left out).
  std::vector<ValueId> calls(std::string_view op, std::vector<Attr> args);
  ValueId call(std::string_view op, std::vector<Attr> args) { return calls(op, std::move(args)).at(0); }
  static Attr ref(ValueId value) { return ir::ValueRef{value}; }

  ValueId binary(std::string_view op, const Attr& a, const Attr& b) { return call(op, {a, b}); }
  ValueId add(ValueId a, const Attr& b) { return call("add", {ref(a), b, Attr(std::int64_t{1})}); }
  ValueId sub(ValueId a, const Attr& b) { return call("sub", {ref(a), b, Attr(std::int64_t{1})}); }
  ValueId mul(ValueId a, const Attr& b) { return call("mul", {ref(a), b}); }
  ValueId unary(std::string_view op, ValueId a) { return call(op, {ref(a)}); }
  ValueId cast(ValueId value, DType dtype);
  /// A result that was computed in a wider type: it has the dtype but keeps its precision inside a fusion, as the results of
  /// pointwise rows do. (A rounded mean beside values that are not rounded would not cancel where they are equal.)
  ValueId result(ValueId value, DType dtype);
  /// In the type eager's kernels accumulate in: float32 for 16-bit floats.
  ValueId widened(ValueId value) { return cast(value, ir::compute_dtype(meta(value).dtype)); }
  /// In the type that eager's kernels for variances and batch norms accumulate in: on the CPU float64 for float32.
  ValueId accumulated(ValueId value);
  ValueId reshape(ValueId value, const Sizes& shape);
  ValueId expand(ValueId value, const Sizes& shape);
  ValueId permute(ValueId value, const Sizes& dims);
  ValueId slice(ValueId value, std::size_t dim, std::int64_t start, std::int64_t end, std::int64_t step = 1);
  ValueId reduce(std::string_view op, ValueId value, const Sizes& dims, bool keepdim);
  ValueId full(const Sizes& shape, const Attr& value, DType dtype, ir::Device device);
  ValueId index(const Sizes& shape, std::size_t dim, DType dtype, ir::Device device);
  /// torch.gather. From the result of pointwise ops on the partition's inputs the inputs are gathered, and the ops done again on
  /// what was read (read_through.cpp).
  ValueId gather(ValueId source, ValueId index, std::size_t dim);
  ValueId where(ValueId condition, const Attr& a, const Attr& b) { return call("select_where", {ref(condition), a, b}); }

 private:
  const ir::OpTable& table_;
  ir::Graph& out_;
  const ir::Node* node_ = nullptr;
};

Attr list_attr(const Sizes& sizes);
Sizes all_dims(std::size_t rank);
Sizes last_dims(std::size_t rank, std::size_t count);
/// A channel's shape beside a batch of them: [1, C, 1, ...]. Throws Error(Value) below rank 2.
Sizes channel_shape(const ir::TensorMeta& meta);

/// One function a `via` word: the values of the node's outputs, kNoValue for one that eager gives as None.
using Decomposition = std::vector<ValueId> (*)(DecomposeBuilder&);
using DecompositionTable = std::vector<std::pair<std::string_view, Decomposition>>;
const DecompositionTable& view_decompositions();
const DecompositionTable& pointwise_decompositions();
const DecompositionTable& reduction_decompositions();
const DecompositionTable& norm_decompositions();
const DecompositionTable& norm_backward_decompositions();
const DecompositionTable& softmax_decompositions();
const DecompositionTable& loss_decompositions();
const DecompositionTable& read_decompositions();
const DecompositionTable& random_decompositions();

}  // namespace fxfuser::partitioner
