#include "executor/random_ops.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>

#include <array>
#include <cmath>

#include "executor/aten_bridge.h"
#include "partitioner/random.h"

namespace fxfuser::executor {
namespace {

using OptionalDType = std::optional<at::ScalarType>;
using OptionalLayout = std::optional<at::Layout>;
using OptionalDevice = std::optional<at::Device>;
using OptionalFormat = std::optional<at::MemoryFormat>;

at::Tensor random_seed(at::Device device) { return at::empty({}, at::TensorOptions().dtype(at::kLong).device(device)).random_(); }

void check_seed(const at::Tensor& seed, std::int64_t node) {
  TORCH_CHECK(seed.dim() == 0 && seed.scalar_type() == at::kLong, "the seed must be one int64, not ", seed.scalar_type(), " of rank ", seed.dim());
  TORCH_CHECK(node >= 0, "node ", node, " is negative");
}

constexpr std::int64_t kLow = 0xffffffff;

at::Tensor high_half(const at::Tensor& product) { return product.bitwise_right_shift(32).bitwise_and(kLow); }

/// One round of Philox4x32 on the words of all counters; products of two words wrap in int64 with the bits that they should have.
std::array<at::Tensor, 4> philox_round(const std::array<at::Tensor, 4>& x, const at::Tensor& k0, const at::Tensor& k1) {
  const at::Tensor a = x[0] * std::int64_t{0xd2511f53}, b = x[2] * std::int64_t{0xcd9e8d57};
  return {high_half(b).bitwise_xor(x[1]).bitwise_xor(k0), b.bitwise_and(kLow), high_half(a).bitwise_xor(x[3]).bitwise_xor(k1), a.bitwise_and(kLow)};
}

/// Where no kernel does it.
at::Tensor random_bits(const at::Tensor& seed, std::int64_t node, c10::SymIntArrayRef size) {
  check_seed(seed, node);
  const c10::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  const std::int64_t count = c10::multiply_integers(sizes);
  const at::Tensor group = at::arange((count + 3) / 4, seed.options());
  const auto word = [&](std::int64_t value) { return at::full_like(group, value); };
  std::array<at::Tensor, 4> x{group.bitwise_and(kLow), group.bitwise_right_shift(32), word(node & kLow), word(node >> 32)};
  at::Tensor k0 = seed.bitwise_and(kLow), k1 = high_half(seed);
  for (int round = 0; round < 10; ++round) {
    x = philox_round(x, k0, k1);
    k0 = (k0 + std::int64_t{0x9e3779b9}).bitwise_and(kLow);
    k1 = (k1 + std::int64_t{0xbb67ae85}).bitwise_and(kLow);
  }
  return at::stack({x[0], x[1], x[2], x[3]}, 1).view({-1}).slice(0, 0, count).view(sizes);
}

at::Tensor random_bits_meta(const at::Tensor& seed, std::int64_t node, c10::SymIntArrayRef size) {
  check_seed(seed, node);
  return at::empty_symint(size, seed.options());
}

at::Tensor bits_of(const at::Tensor& seed, std::int64_t node, c10::SymIntArrayRef size) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("fxfuser::random_bits", "").typed<at::Tensor(const at::Tensor&, std::int64_t, c10::SymIntArrayRef)>();
  return op.call(seed, node, size);
}

at::Tensor chosen(const at::Tensor& seed, std::int64_t node, c10::SymIntArrayRef size, double probability) {
  return bits_of(seed, node, size).lt(partitioner::random_threshold(probability));
}

/// Values of [0, 1) that the dtype holds exactly, equally far from each other.
at::Tensor uniform(const at::Tensor& seed, std::int64_t node, c10::SymIntArrayRef size, at::ScalarType dtype) {
  const int digits = partitioner::random_digits(to_dtype(dtype));
  TORCH_CHECK(digits > 0, "random numbers of ", dtype, " are not drawn from a seed");
  const at::Tensor bits = bits_of(seed, node, size);
  if (digits <= 32) return bits.bitwise_right_shift(32 - digits).to(dtype) * std::ldexp(1.0, -digits);
  const at::Tensor more = bits_of(seed, node + partitioner::kSecondWord, size);
  return (bits.bitwise_right_shift(5).to(dtype) * std::ldexp(1.0, 26) + more.bitwise_right_shift(6).to(dtype)) * std::ldexp(1.0, -digits);
}

std::tuple<at::Tensor, at::Tensor> seeded_native_dropout(const at::Tensor& self, double p, std::optional<bool> train, const at::Tensor& seed, std::int64_t node) {
  if (!train.value_or(true)) return {self.clone(), at::ones_like(self, at::kBool)};
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  at::Tensor mask = chosen(seed, node, self.sym_sizes(), 1 - p);
  if (!self.is_contiguous()) mask = at::full_like(self, true, self.options().dtype(at::kBool)).logical_and(mask);  // eager's has the layout of what it masks
  return {self * mask * (p == 1 ? 0.0 : 1 / (1 - p)), mask};
}

at::Tensor seeded_dropout(const at::Tensor& self, double p, bool train, const at::Tensor& seed, std::int64_t node) {
  return train ? std::get<0>(seeded_native_dropout(self, p, train, seed, node)) : self.clone();
}

at::Tensor seeded_bernoulli(const at::Tensor& self, double p, const std::optional<at::Generator>&, const at::Tensor& seed, std::int64_t node) {
  return chosen(seed, node, self.sym_sizes(), p).to(self.scalar_type());
}

at::Tensor seeded_rand(c10::SymIntArrayRef size, OptionalDType dtype, OptionalLayout, OptionalDevice, std::optional<bool>, const at::Tensor& seed, std::int64_t node) {
  return uniform(seed, node, size, dtype.value_or(at::get_default_dtype_as_scalartype()));
}

at::Tensor seeded_rand_like(const at::Tensor& self, OptionalDType dtype, OptionalLayout, OptionalDevice, std::optional<bool>, OptionalFormat, const at::Tensor& seed,
                            std::int64_t node) {
  return uniform(seed, node, self.sym_sizes(), dtype.value_or(self.scalar_type()));
}

at::Tensor seeded_uniform(const at::Tensor& self, double low, double high, const std::optional<at::Generator>&, const at::Tensor& seed, std::int64_t node) {
  return uniform(seed, node, self.sym_sizes(), self.scalar_type()) * (high - low) + low;
}

}  // namespace

void define_random_ops(torch::Library& library) {
  const std::vector<at::Tag> traced{at::Tag::pt2_compliant_tag}, random{at::Tag::pt2_compliant_tag, at::Tag::nondeterministic_seeded};
  library.def("random_seed(*, Device device) -> Tensor", random);
  library.impl("random_seed", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &random_seed));
  library.def("random_bits(Tensor seed, int node, SymInt[] size) -> Tensor", traced);
  library.impl("random_bits", torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &random_bits));
  library.impl("random_bits", torch::dispatch(c10::DispatchKey::Meta, &random_bits_meta));
  library.def("seeded_native_dropout(Tensor self, float p, bool? train, Tensor seed, int node) -> (Tensor, Tensor)", &seeded_native_dropout, traced);
  library.def("seeded_dropout(Tensor self, float p, bool train, Tensor seed, int node) -> Tensor", &seeded_dropout, traced);
  library.def("seeded_bernoulli.p(Tensor self, float p, Generator? generator, Tensor seed, int node) -> Tensor", &seeded_bernoulli, traced);
  library.def("seeded_rand(SymInt[] size, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory, Tensor seed, int node) -> Tensor", &seeded_rand, traced);
  library.def(
      "seeded_rand_like(Tensor self, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory, MemoryFormat? memory_format, Tensor seed, int node) -> Tensor",
      &seeded_rand_like, traced);
  library.def("seeded_uniform(Tensor self, float low, float high, Generator? generator, Tensor seed, int node) -> Tensor", &seeded_uniform, traced);
}

}  // namespace fxfuser::executor
