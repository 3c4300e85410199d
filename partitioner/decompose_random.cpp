// Random ops that were given a seed: all come down to the 32 bits of an element of a node.
//
// The number of an element is its place in the tensor's shape, not in memory, so that a backward graph with other strides draws what the
// forward graph drew. It and the node's number are index forms: sizes and nodes are arguments of a kernel, equal layers share one.

#include <cmath>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"
#include "partitioner/random.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

/// A number as a 0-dim tensor whose value the kernel gets as an argument.
ValueId argument(B& b, std::int64_t number, ir::Device device) {
  return b.reshape(b.slice(b.index({number + 1}, 0, DType::Int64, device), 0, number, number + 1), {});
}

/// int64 values in [0, 2^32) of a shape.
ValueId bits_of(B& b, const Sizes& shape, std::int64_t node) {
  const ValueId seed = b.tensor("seed");
  const ir::TensorMeta& meta = b.meta(seed);
  FXF_CHECK(meta.sizes.empty() && meta.dtype == DType::Int64, Value, "{}: the seed is no single int64", b.node().name);
  FXF_CHECK(node >= 0, Value, "{}: node {} is negative", b.node().name, node);
  const ir::Device device = meta.device;
  std::int64_t count = 1;
  for (std::int64_t size : shape) count *= size;
  if (count == 0) return b.full(shape, std::int64_t{0}, DType::Int64, device);
  const ValueId element = b.reshape(b.index({count}, 0, DType::Int64, device), shape);
  return b.call("philox", {b.ref(seed), b.ref(argument(b, node, device)), b.ref(element)});
}

ValueId bits_of(B& b, const Sizes& shape) { return bits_of(b, shape, b.integer("node", 0)); }

/// True with a probability.
ValueId chosen(B& b, const Sizes& shape, double probability) { return b.binary("lt", b.ref(bits_of(b, shape)), random_threshold(probability)); }

ValueId shifted(B& b, ValueId bits, std::int64_t by) { return b.binary("bitwise_right_shift", b.ref(bits), by); }

/// Values of [0, 1) that the dtype holds exactly, equally far from each other.
ValueId uniform(B& b, const Sizes& shape, DType dtype) {
  const int digits = random_digits(dtype);
  FXF_CHECK(digits > 0, NotImplemented, "{}: random numbers of {}", b.node().name, ir::name(dtype));
  const ValueId bits = bits_of(b, shape);
  if (digits <= 32) return b.mul(b.cast(shifted(b, bits, 32 - digits), dtype), std::ldexp(1.0, -digits));
  const ValueId more = bits_of(b, shape, b.integer("node", 0) + kSecondWord);
  const ValueId high = b.cast(shifted(b, bits, 5), dtype), low = b.cast(shifted(b, more, 6), dtype);
  return b.mul(b.add(b.mul(high, std::ldexp(1.0, 26)), b.ref(low)), std::ldexp(1.0, -digits));
}

DType dtype_of(B& b, DType fallback) {
  const auto* dtype = std::get_if<DType>(&b.arg("dtype").v);
  return dtype == nullptr ? fallback : *dtype;
}

Values random_bits(B& b) { return {bits_of(b, b.arg("shape").as_sizes())}; }

Values seeded_native_dropout(B& b) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  const double p = b.real("p", 0.5);
  FXF_CHECK(p >= 0 && p <= 1, Value, "{}: a probability of {}", b.node().name, p);
  const ValueId mask = chosen(b, meta.sizes, 1 - p);
  const ValueId out = b.mul(b.mul(self, b.ref(mask)), p == 1 ? 0.0 : 1 / (1 - p));
  b.graph().values[mask].meta->strides = ir::is_non_overlapping_and_dense(meta) ? meta.strides : ir::iterator_strides(meta.sizes, {&meta});
  return {out, mask};
}

Values seeded_dropout(B& b) { return {seeded_native_dropout(b)[0]}; }

Values seeded_bernoulli(B& b) {
  const ir::TensorMeta meta = b.meta(b.tensor("self"));
  return {b.cast(chosen(b, meta.sizes, b.real("p", 0.5)), meta.dtype)};
}

Values seeded_rand(B& b) { return {uniform(b, b.arg("shape").as_sizes(), dtype_of(b, DType::Float32))}; }

Values seeded_rand_like(B& b) {
  const ir::TensorMeta meta = b.meta(b.tensor("self"));
  return {uniform(b, meta.sizes, dtype_of(b, meta.dtype))};
}

Values seeded_uniform(B& b) {
  const ir::TensorMeta meta = b.meta(b.tensor("self"));
  const double low = b.real("low", 0), high = b.real("high", 1);
  return {b.add(b.mul(uniform(b, meta.sizes, meta.dtype), high - low), low)};
}

}  // namespace

const DecompositionTable& random_decompositions() {
  static const DecompositionTable table = {{"random_bits", random_bits},
                                           {"seeded_bernoulli", seeded_bernoulli},
                                           {"seeded_dropout", seeded_dropout},
                                           {"seeded_native_dropout", seeded_native_dropout},
                                           {"seeded_rand", seeded_rand},
                                           {"seeded_rand_like", seeded_rand_like},
                                           {"seeded_uniform", seeded_uniform}};
  return table;
}

}  // namespace fxfuser::partitioner
