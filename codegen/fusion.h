#pragma once
// What one kernel computes. One iteration space of axes, each kept (K) or reduced (R); a body of scalar expressions, each
// evaluated at a point of that space; loads and stores addressed by affine forms over the axes. Views, broadcasts, slices
// and permutes are gone: they are in the affine forms. Sizes, strides and offsets are concrete here and become kernel
// arguments when text is made, so the text depends on the pattern only (codegen/pattern rules in kernel_source.h).
//
// Levels: an expression that depends on a reduced axis is "full", one that depends on kept axes only is "row", one on
// reduced axes only is "column" (evaluated like a full one), one on none is "scalar". A Reduce turns a full value into a
// row value; a Reduce over the kept axes (a column sum beside row reductions) turns it into a value of its own, "folded
// columns", that nothing but outputs of the columns' size may read. stage(e) = number of Reduce nodes on the longest path to e: values of stage s+1 need the rows of stage s.

#include <cstdint>
#include <string>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::codegen {

using ir::DType;

struct Axis {
  std::int64_t size = 1;
  bool reduced = false;
  bool operator==(const Axis&) const = default;
};

/// offset + sum(coeff[a] * index[a]); coeff has one entry an axis.
struct Affine {
  std::vector<std::int64_t> coeff;
  std::int64_t offset = 0;
  bool operator==(const Affine&) const = default;
};

/// low <= form < high.
struct Bound {
  Affine form;
  std::int64_t low = 0, high = 0;
  bool operator==(const Bound&) const = default;
};

/// An address term taken from an integer expression: address += stride * wrap(value of expr, extent). A negative index
/// counts from the end; the result is clamped to [0, extent) so that a bad index never reads outside (eager asserts).
struct Indirect {
  std::uint32_t expr = 0;
  std::int64_t stride = 0;
  std::int64_t extent = 0;
};

enum class ExprKind : std::uint8_t {
  Load,      // inputs[input] at address (+ indirect terms); where a guard fails the result is 0 and nothing is read
  Number,    // a literal
  Scalar,    // a number known at the call: inputs[input] is a Scalar or a 0-dim CPU tensor beside CUDA ones
  Index,     // the affine form itself, as int64
  Compute,   // a pointwise row over operands
  Cast,      // operand to dtype, rounded to it where `rounds` holds
  Select,    // all bounds hold ? operands[0] : operands[1]
  Reduce,    // a reduction row over operands[0], over the axes in `over`
};

struct Expr {
  ExprKind kind = ExprKind::Number;
  DType dtype = DType::Float32;    // of the result; its register type is compute_dtype(dtype)
  DType compute = DType::Float32;  // Compute, Reduce: dtype the operands are converted to first (register type of it)
  const ir::OpRow* row = nullptr;
  std::vector<std::uint32_t> operands;       // ids of earlier expressions; Compute: row->tensor_params order
  std::vector<std::pair<std::string, ir::Attr>> attrs;  // the row's other params: numbers by name (literals in the text)
  ir::Attr number;                           // Number
  std::uint32_t input = 0;                   // Load, Scalar
  Affine form;                               // Load: address in elements; Index: the value
  std::vector<Indirect> indirect;            // Load
  std::vector<Bound> bounds;                 // Load: guard; Select: condition
  bool rounds = true;                        // Cast: false says the dtype only, as the result of a Compute does
  std::uint64_t over = 0;                    // Reduce: bit a set = axis a is folded; all reduced axes, or all kept ones
  std::uint32_t reduce_output = 0;           // Reduce with arg_state: 0 the value, 1 the index (two Exprs, same operands)
  // set by analyze():
  std::uint64_t depends = 0;                 // axes the value depends on
  std::uint32_t stage = 0;
  bool folds_columns = false;                // a Reduce over the kept axes while others are reduced, or what follows from one
  std::string note;                          // provenance: "%12 = aten.mul"
};

struct FusionInput {
  ir::ValueId value = ir::kNoValue;  // in the canonical graph
  ir::TensorMeta meta;
  bool scalar = false;               // a number, or a 0-dim CPU tensor read on the host
};

struct FusionOutput {
  ir::ValueId value = ir::kNoValue;
  ir::TensorMeta meta;               // as it must be stored: dtype, sizes, strides
  std::uint32_t expr = 0;
  Affine form;                       // address in elements
  std::vector<Bound> bounds;         // store only where they hold (empty: everywhere)
};

struct Fusion {
  std::vector<Axis> axes;  // outermost first; at most 64
  std::vector<FusionInput> inputs;
  std::vector<Expr> body;  // topological
  std::vector<FusionOutput> outputs;
  ir::Device device;
  bool eager_rounding = false;  // round every 16-bit intermediate to its traced dtype, no contraction

  std::uint64_t reduced_mask() const;
  std::int64_t kept_numel() const;
  std::int64_t reduced_numel() const;
  bool has_reduction() const;
};

/// Fills depends and stage of every expression. Throws Error(Internal) when the body is not topological.
void analyze(Fusion& fusion);
/// Readable dump: axes, inputs, body, outputs, one a line.
std::string to_string(const Fusion& fusion);

}  // namespace fxfuser::codegen
