#include "bindings/min_cut.h"

#include <algorithm>

#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// Arcs in pairs: arc a and its reverse a ^ 1.
class Network {
 public:
  Network(std::uint32_t nodes, std::span<const FlowEdge> edges) : first_(nodes, kNone), level_(nodes), at_(nodes) {
    to_.reserve(2 * edges.size());
    for (const FlowEdge& edge : edges) {
      FXF_CHECK(edge.from < nodes && edge.to < nodes && edge.capacity >= 0, Value, "an edge from {} to {} of capacity {} in a network of {} nodes", edge.from, edge.to,
                edge.capacity, nodes);
      add(edge.from, edge.to, edge.capacity);
      add(edge.to, edge.from, 0);
    }
  }

  void saturate(std::uint32_t source, std::uint32_t sink) {
    std::int64_t total = 0;
    while (set_levels(source, sink)) {
      at_ = first_;
      while (const std::int64_t pushed = push_path(source, sink)) {
        total += pushed;
        FXF_CHECK(total < kUnbounded, Value, "no cut of this network is finite");
      }
    }
  }

  /// Nodes from which the sink can still be reached.
  std::vector<bool> reaching(std::uint32_t sink) const {
    std::vector<bool> seen(first_.size(), false);
    std::vector<std::uint32_t> work{sink};
    seen[sink] = true;
    while (!work.empty()) {
      const std::uint32_t node = work.back();
      work.pop_back();
      for (std::uint32_t arc = first_[node]; arc != kNone; arc = next_[arc]) {
        if (left_[arc ^ 1] == 0 || seen[to_[arc]]) continue;
        seen[to_[arc]] = true;
        work.push_back(to_[arc]);
      }
    }
    return seen;
  }

 private:
  void add(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
    to_.push_back(to);
    left_.push_back(capacity);
    next_.push_back(first_[from]);
    first_[from] = static_cast<std::uint32_t>(to_.size() - 1);
  }

  /// Distances from the source along arcs with capacity left; false when the sink is out of reach.
  bool set_levels(std::uint32_t source, std::uint32_t sink) {
    std::fill(level_.begin(), level_.end(), kNone);
    std::vector<std::uint32_t> work{source};
    level_[source] = 0;
    for (std::size_t head = 0; head < work.size(); ++head) {
      const std::uint32_t node = work[head];
      for (std::uint32_t arc = first_[node]; arc != kNone; arc = next_[arc]) {
        if (left_[arc] == 0 || level_[to_[arc]] != kNone) continue;
        level_[to_[arc]] = level_[node] + 1;
        work.push_back(to_[arc]);
      }
    }
    return level_[sink] != kNone;
  }

  /// Pushes along one shortest path; 0 when there is none left. `at_` never goes back, so dead ends are tried once.
  std::int64_t push_path(std::uint32_t source, std::uint32_t sink) {
    std::vector<std::uint32_t> path;
    std::uint32_t node = source;
    while (node != sink) {
      std::uint32_t& arc = at_[node];
      while (arc != kNone && (left_[arc] == 0 || level_[to_[arc]] != level_[node] + 1)) arc = next_[arc];
      if (arc != kNone) {
        path.push_back(arc);
        node = to_[arc];
        continue;
      }
      if (path.empty()) return 0;
      node = to_[path.back() ^ 1];
      path.pop_back();
      at_[node] = next_[at_[node]];
    }
    std::int64_t amount = kUnbounded;
    for (const std::uint32_t arc : path) amount = std::min(amount, left_[arc]);
    for (const std::uint32_t arc : path) {
      if (left_[arc] != kUnbounded) left_[arc] -= amount;
      if (left_[arc ^ 1] != kUnbounded) left_[arc ^ 1] += amount;
    }
    return amount;
  }

  std::vector<std::uint32_t> to_, next_;
  std::vector<std::int64_t> left_;
  std::vector<std::uint32_t> first_, level_, at_;
};

}  // namespace

std::vector<bool> min_cut(std::uint32_t nodes, std::span<const FlowEdge> edges, std::uint32_t source, std::uint32_t sink) {
  FXF_CHECK(source < nodes && sink < nodes && source != sink, Value, "a cut between node {} and node {} of {}", source, sink, nodes);
  Network network(nodes, edges);
  network.saturate(source, sink);
  return network.reaching(sink);
}

}  // namespace fxfuser::bindings
