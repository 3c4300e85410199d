#pragma once
// The `fxfuser` ops behind the option fused_rng: a seed, the random bits that follow from it, and ATen's random ops with a seed and the
// number of a node in place of a generator.

#include <torch/library.h>

namespace fxfuser::executor {

/// random_seed(*, Device device) draws from the device's default generator; random_bits(seed, node, size) gives int64 values in
/// [0, 2^32), the words of Philox4x32-10; seeded_* are composites of these and of ATen's pointwise ops, so a trace sees the parts.
void define_random_ops(torch::Library& library);

}  // namespace fxfuser::executor
