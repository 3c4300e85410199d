#pragma once
// Union-find over dense ids: near-linear, and the smallest member stands for its set, so results never depend on the order
// in which sets were joined.

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace fxfuser::partitioner {

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }

  std::uint32_t find(std::uint32_t id) {
    while (parent_[id] != id) {
      parent_[id] = parent_[parent_[id]];  // halve the path: no recursion, so depth never matters
      id = parent_[id];
    }
    return id;
  }

  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    parent_[b] = a;
  }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace fxfuser::partitioner
