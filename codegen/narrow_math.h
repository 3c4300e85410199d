#pragma once
// Which values are seen only after a rounding to 16 bits (or fewer): their functions may be a little less exact, and are then a
// row's "narrow" expression.

#include <vector>

#include "codegen/fusion.h"

namespace fxfuser::codegen {

/// Per expression: true where every way from it to an output ends in a rounding to a 16-bit or 8-bit float and no step on the
/// way jumps (comparisons, floor, indices, casts to integers). Nothing is narrow under eager rounding.
std::vector<bool> narrow_values(const Fusion& fusion);

}  // namespace fxfuser::codegen
