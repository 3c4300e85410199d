#pragma once
// Offsets of values in one block of memory, so that no two lie on one another while both live. Greedy by size: the largest value
// is placed first, each into the smallest gap that holds it between those that live at the same time (Pisarchyk and Lee,
// "Efficient memory management for deep neural net inference", 2020).

#include <cstdint>
#include <vector>

namespace fxfuser::executor {

/// A value of `bytes` bytes that lives from step `first` to step `last`, both included.
struct Lifetime {
  std::uint32_t first = 0, last = 0;
  std::int64_t bytes = 0;
};

struct Placement {
  std::vector<std::int64_t> offsets;  // by value; sums of the values' bytes, so multiples of what all sizes are multiples of
  std::int64_t bytes = 0;             // of the block
};

/// Quadratic in the number of values.
Placement place(const std::vector<Lifetime>& values);

}  // namespace fxfuser::executor
