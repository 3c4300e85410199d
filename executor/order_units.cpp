#include "executor/order_units.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

using UnitId = std::uint32_t;

constexpr std::uint32_t kAtTheEnd = std::numeric_limits<std::uint32_t>::max();

struct Order {
  std::vector<Unit> units;
  std::vector<std::uint32_t> place;  // by unit: the origin of its last node
  std::vector<std::vector<UnitId>> followers;
  std::vector<std::uint32_t> waiting;  // by unit: how many must run before it
};

Order make_order(const LoweredGraph& lowered) {
  const ir::Graph& graph = lowered.graph;
  Order order;
  std::vector<UnitId> unit_of(graph.nodes.size());
  for (std::size_t p = 0; p < lowered.partitions.size(); ++p) {
    order.units.push_back({static_cast<std::int32_t>(p), ir::kNoNode});
    order.place.push_back(0);
    for (ir::NodeId id : lowered.partitions[p].nodes) {
      unit_of[id] = static_cast<UnitId>(p);
      order.place.back() = std::max(order.place.back(), graph.nodes[id].origin);
    }
  }
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (lowered.partition_of[id] >= 0) continue;
    unit_of[id] = static_cast<UnitId>(order.units.size());
    order.units.push_back({-1, id});
    order.place.push_back(graph.nodes[id].origin);
  }
  order.followers.resize(order.units.size());
  order.waiting.assign(order.units.size(), 0);
  const auto edge = [&](UnitId from, UnitId to) {
    if (from == to) return;
    order.followers[from].push_back(to);
    ++order.waiting[to];
  };
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    ir::for_each_value(graph.nodes[id].args, [&](ir::ValueId value) {
      const ir::NodeId producer = graph.value(value).producer;
      if (producer != ir::kNoNode) edge(unit_of[producer], unit_of[id]);
    });
    for (ir::NodeId before : graph.nodes[id].after) edge(unit_of[before], unit_of[id]);
  }
  return order;
}

bool is_wait(const ir::Node& node) { return node.target == "_c10d_functional.wait_tensor.default"; }

bool is_view(const ir::Node& node) { return node.row != nullptr && (node.row->kind == ir::OpKind::View || node.row->metadata_only); }

/// Moves waits, and the views of what they waited for, to where their first follower is.
void delay_waits(const LoweredGraph& lowered, Order& order) {
  const ir::Graph& graph = lowered.graph;
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_wait)) return;
  std::vector<UnitId> late;  // each after the units that it reads
  std::vector<bool> waited(graph.values.size(), false);
  for (UnitId unit = 0; unit < order.units.size(); ++unit) {
    if (order.units[unit].partition >= 0) continue;
    const ir::Node& node = graph.nodes[order.units[unit].node];
    bool reads_waited = false;
    ir::for_each_value(node.args, [&](ir::ValueId value) { reads_waited = reads_waited || waited[value]; });
    if (!is_wait(node) && !(is_view(node) && reads_waited)) continue;
    late.push_back(unit);
    for (ir::ValueId output : node.outputs) waited[output] = true;
  }
  for (auto unit = late.rbegin(); unit != late.rend(); ++unit) {
    order.place[*unit] = kAtTheEnd;
    for (UnitId follower : order.followers[*unit]) order.place[*unit] = std::min(order.place[*unit], order.place[follower]);
  }
}

}  // namespace

std::vector<Unit> order_units(const LoweredGraph& lowered) {
  Order order = make_order(lowered);
  delay_waits(lowered, order);
  using Ready = std::pair<std::uint32_t, UnitId>;  // (place, unit)
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (UnitId unit = 0; unit < order.units.size(); ++unit) {
    if (order.waiting[unit] == 0) ready.emplace(order.place[unit], unit);
  }
  std::vector<Unit> out;
  while (!ready.empty()) {
    const UnitId unit = ready.top().second;
    ready.pop();
    out.push_back(order.units[unit]);
    for (UnitId next : order.followers[unit]) {
      if (--order.waiting[next] == 0) ready.emplace(order.place[next], next);
    }
  }
  FXF_ASSERT(out.size() == order.units.size(), "the partitions form a cycle");
  return out;
}

}  // namespace fxfuser::executor
