#include "executor/placement.h"

#include <algorithm>
#include <numeric>

namespace fxfuser::executor {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

/// Where `value` lies best between those placed before, whose indices are in `by_offset`.
std::int64_t best_offset(const std::vector<Lifetime>& values, const Placement& placed, const std::vector<std::size_t>& by_offset, const Lifetime& value) {
  std::int64_t end = 0, best = -1, best_gap = 0;  // `end`: of the neighbours seen so far
  for (const std::size_t other : by_offset) {
    if (!overlap(values[other], value)) continue;
    const std::int64_t gap = placed.offsets[other] - end;
    if (gap >= value.bytes && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
    end = std::max(end, placed.offsets[other] + values[other].bytes);
  }
  return best >= 0 ? best : end;
}

}  // namespace

Placement place(const std::vector<Lifetime>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a].bytes > values[b].bytes; });
  Placement out;
  out.offsets.resize(values.size(), 0);
  std::vector<std::size_t> by_offset;
  for (const std::size_t index : order) {
    const std::int64_t offset = best_offset(values, out, by_offset, values[index]);
    out.offsets[index] = offset;
    out.bytes = std::max(out.bytes, offset + values[index].bytes);
    by_offset.insert(std::upper_bound(by_offset.begin(), by_offset.end(), offset, [&](std::int64_t at, std::size_t other) { return at < out.offsets[other]; }), index);
  }
  return out;
}

}  // namespace fxfuser::executor
