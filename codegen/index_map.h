#pragma once
// Affine forms over the axes of an iteration space, and the one operation that makes reshapes possible: an axis splits into an
// outer and an inner one where a dim boundary falls inside it, and every form follows.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "codegen/fusion.h"

namespace fxfuser::codegen {

/// One form a dim: where in a tensor a point of the space reads or writes.
using Map = std::vector<Affine>;

Affine constant(std::size_t axes, std::int64_t value);
Affine scaled(const Affine& form, std::int64_t factor);
Affine sum(const Affine& a, const Affine& b);
bool is_constant(const Affine& form);
/// Smallest and largest value over the space.
std::int64_t lowest(const Affine& form, const std::vector<Axis>& axes);
std::int64_t highest(const Affine& form, const std::vector<Axis>& axes);
/// sum(weights[d] * map[d]).
Affine dot(const Map& map, const std::vector<std::int64_t>& weights, std::size_t axes);

/// Splits `axis` into an outer axis (at its place) and an inner one of `inner` points (right behind it) in one form.
void split_form(Affine& form, std::size_t axis, std::int64_t inner);

/// The axis that must be split, and by what, before a form can be delinearised.
struct Split {
  std::size_t axis;
  std::int64_t inner;
};
/// Takes a linear index apart over `sizes` (row-major). Either the map, or the split that is needed first, or nothing: no
/// refinement of the axes makes it affine.
struct Delinearized {
  std::optional<Map> map;
  std::optional<Split> split;
};
Delinearized delinearize(const Affine& linear, const std::vector<std::int64_t>& sizes, const std::vector<Axis>& axes);

}  // namespace fxfuser::codegen
