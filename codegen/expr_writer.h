#pragma once
// Body expressions -> C text, the same for both targets: `const float v7 = v3 * v5;  // %mul = aten.mul`. The emitter owns
// loops, loads, stores and where values live; this unit owns how a Compute, Cast, Select, Index or Number reads.

#include <functional>
#include <string>

#include "codegen/arch.h"
#include "codegen/fusion.h"

namespace fxfuser::codegen {

/// C name of the register type of a dtype: float, double, bool, int, long long, unsigned char, ...
std::string register_type(DType dtype);
/// C name of the memory type: float, fxf_half, fxf_bfloat16, unsigned char (bool), ...
std::string storage_type(DType dtype);

struct ExprNames {
  std::function<std::string(std::uint32_t)> value;            // name (or text) that holds expression id's value
  std::function<std::string(const Affine&)> affine;           // text of an affine form at the current point
  std::function<std::string(const Bound&)> bound;             // text of "low <= form < high" at the current point
  bool narrow = false;                                        // only a rounding to 16 bits sees the result (CUDA)
  std::string kept_words;                                     // where a thread keeps the last random words of this expression (CUDA)
};

/// Does a Compute draw random bits?
bool is_random(const Expr& expr);
/// "  // mul" after a statement, or nothing. The op and never the node: equal layers must have equal text, to compile once.
std::string comment_of(const Expr& expr);
/// Right-hand side of one Compute/Cast/Select/Index/Number expression. Operands are converted to the compute dtype's
/// register type where they differ; with eager_rounding a 16-bit result is rounded to its dtype.
std::string expression_text(const Fusion& fusion, std::uint32_t id, Target target, const ExprNames& names);
/// A number as a literal of the dtype's register type, exact (shortest round trip; inf and nan by prelude names).
std::string literal(const ir::Attr& number, DType dtype);
/// Text of the fold of a Reduce: "a = fold(a, b)" over accumulator and element names; and of its init and post.
std::string fold_text(const Expr& reduce, Target target, const std::string& a, const std::string& b);
/// The predicate "take (b, bi)" of an arg reduction.
std::string arg_fold_text(const Expr& reduce, const std::string& a, const std::string& b, const std::string& ai, const std::string& bi);
std::string init_text(const Expr& reduce);
std::string pre_text(const Expr& reduce, Target target, const std::string& self);
std::string post_text(const Expr& reduce, Target target, const std::string& acc, const std::string& count);
/// Does a Reduce add floating-point values, so that rounding errors can be carried along?
bool is_float_sum(const Expr& reduce);
/// Bytes that the chain of a Reduce takes in shared memory and in the workspace.
int chain_bytes(const Expr& reduce, bool compensated);
/// Register type the accumulator of a Reduce has (float for 16-bit and 32-bit floats, double, long long, bool).
DType accumulator_dtype(const Expr& reduce);

}  // namespace fxfuser::codegen
