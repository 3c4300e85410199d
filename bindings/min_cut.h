#pragma once
// The cheapest cut of a flow network: Dinic's algorithm.

#include <cstdint>
#include <span>
#include <vector>

namespace fxfuser::bindings {

struct FlowEdge {
  std::uint32_t from = 0, to = 0;
  std::int64_t capacity = 0;  // kUnbounded: never cut
};

inline constexpr std::int64_t kUnbounded = std::int64_t{1} << 60;

/// Which of `nodes` nodes lie on the sink's side of a cheapest cut; of several the one nearest to the sink. Throws Error(Value)
/// for an edge between nodes that do not exist, and when no cut is finite.
std::vector<bool> min_cut(std::uint32_t nodes, std::span<const FlowEdge> edges, std::uint32_t source, std::uint32_t sink);

}  // namespace fxfuser::bindings
