#pragma once
// A maximum and the sum of the exponentials of what its values lie below it, in one pass over the row: whenever the maximum grows, the
// sum so far is scaled (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).

#include <optional>

#include "codegen/fusion.h"

namespace fxfuser::codegen {

/// Is expression `sum` the sum of exp(x - top), top being the maximum of the same x over the same axes? Which that is.
std::optional<std::uint32_t> online_top(const Fusion& fusion, std::uint32_t sum);

/// Passes over a row that its reductions take when such pairs share one (plan_passes with `online`).
std::uint32_t online_rounds(const Fusion& fusion);

}  // namespace fxfuser::codegen
