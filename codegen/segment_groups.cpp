#include "codegen/segment_groups.h"

#include <algorithm>

#include "codegen/build_fusion.h"
#include "codegen/segment_cost.h"
#include "partitioner/ir/error.h"

namespace fxfuser::codegen {
namespace {

constexpr std::size_t kMaxSearch = 4096;

template <typename T>
void sort_unique(std::vector<T>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

}  // namespace

std::vector<ir::NodeId> KernelBuilder::nodes_of(const std::vector<UnitId>& units) const {
  std::vector<ir::NodeId> nodes;
  for (const UnitId id : units) {
    const Unit& unit = units_.all[id];
    nodes.push_back(unit.node);
    nodes.insert(nodes.end(), unit.free.begin(), unit.free.end());
  }
  sort_unique(nodes);
  return nodes;
}

ScheduleOptions KernelBuilder::options_for(const Fusion& fusion) const {
  // The caller knows the graph's inputs; values between segments are allocations of our own.
  ScheduleOptions options = options_;
  options.input_alignment.assign(fusion.inputs.size(), 0);
  if (options_.input_alignment.empty()) return options;
  const std::vector<ir::ValueId>& inputs = units_.graph.inputs;
  for (std::size_t i = 0; i < fusion.inputs.size(); ++i)
    for (std::size_t k = 0; k < std::min(inputs.size(), options_.input_alignment.size()); ++k)
      if (inputs[k] == fusion.inputs[i].value) options.input_alignment[i] = options_.input_alignment[k];
  return options;
}

Built KernelBuilder::build(const std::vector<UnitId>& units, const std::vector<ir::ValueId>& stores) const {
  Built built;
  FusionOrReason result = build_fusion(units_.graph, nodes_of(units), stores);
  if (auto* reason = std::get_if<partitioner::Reason>(&result)) {
    built.refusal = std::move(*reason);
    return built;
  }
  built.fusion = std::move(std::get<Fusion>(result));
  Selected selected = select_schedule(built.fusion, arch_, options_for(built.fusion));
  if (!selected.schedule) {
    partitioner::Reason reason{partitioner::ReasonCode::NoSchedule, ""};
    for (const partitioner::Reason& refusal : selected.refusals) {
      if (!reason.detail.empty()) reason.detail += "; ";
      reason.detail += refusal.detail;
    }
    built.refusal = std::move(reason);
    return built;
  }
  built.schedule = std::move(*selected.schedule);
  built.cost = estimate_ns(built.fusion, built.schedule, arch_);
  return built;
}

Groups::Groups(const Units& units, const KernelBuilder& builder, const std::vector<std::vector<UnitId>>& initial)
    : units_(units), builder_(builder), of_unit_(units.all.size(), kNoGroup) {
  groups_.resize(initial.size());
  for (GroupId id = 0; id < initial.size(); ++id)
    for (const UnitId unit : initial[id]) of_unit_[unit] = id;
  for (GroupId id = 0; id < initial.size(); ++id) groups_[id] = make(initial[id], id, id);
  link();
}

bool Groups::read_outside(ir::ValueId value, GroupId a, GroupId b) const {
  if (units_.wanted[value]) return true;
  const std::vector<UnitId>& readers = units_.readers[value];
  return std::any_of(readers.begin(), readers.end(), [&](UnitId u) { return of_unit_[u] != a && of_unit_[u] != b; });
}

Group Groups::make(std::vector<UnitId> units, GroupId a, GroupId b) const {
  Group group;
  group.units = std::move(units);
  for (const UnitId id : group.units) {
    const Unit& unit = units_.all[id];
    group.space = std::max(group.space, unit.space);
    group.nodes += 1 + unit.free.size();
    for (const ir::ValueId read : unit.reads) {
      const UnitId producer = units_.producer(read);
      const GroupId from = producer == kNoUnit ? kNoGroup : of_unit_[producer];
      if (from == kNoGroup || (from != a && from != b)) group.reads.push_back(read);
    }
    for (const ir::ValueId out : units_.graph.node(unit.node).outputs)
      if (read_outside(out, a, b)) group.stores.push_back(out);
  }
  sort_unique(group.reads);
  sort_unique(group.stores);
  return group;
}

/// Edges between the first groups, and positions in an order in which they can run.
void Groups::link() {
  for (UnitId id = 0; id < units_.all.size(); ++id) {
    const auto edge = [&](UnitId from) {
      if (of_unit_[from] == of_unit_[id]) return;
      groups_[of_unit_[from]].after.insert(of_unit_[id]);
      groups_[of_unit_[id]].before.insert(of_unit_[from]);
    };
    for (const ir::ValueId read : units_.all[id].reads)
      if (const UnitId from = units_.producer(read); from != kNoUnit) edge(from);
    for (const UnitId from : units_.all[id].after) edge(from);
  }
  std::vector<std::size_t> waiting(groups_.size());
  std::set<GroupId> ready;
  for (GroupId id = 0; id < groups_.size(); ++id)
    if ((waiting[id] = groups_[id].before.size()) == 0) ready.insert(id);
  std::int64_t position = 0;
  while (!ready.empty()) {
    const GroupId id = *ready.begin();
    ready.erase(ready.begin());
    groups_[id].position = position++;
    for (const GroupId next : groups_[id].after)
      if (--waiting[next] == 0) ready.insert(next);
  }
  FXF_ASSERT(position == static_cast<std::int64_t>(groups_.size()), "the first groups of a graph have a cycle");
}

const Built& Groups::built(GroupId id) {
  Group& group = groups_[id];
  if (!group.built) group.built = builder_.build(group.units, group.stores);
  return *group.built;
}

Group Groups::merged(GroupId a, GroupId b) const {
  std::vector<UnitId> units;
  std::merge(groups_[a].units.begin(), groups_[a].units.end(), groups_[b].units.begin(), groups_[b].units.end(),
             std::back_inserter(units));
  Group group = make(std::move(units), a, b);
  for (const GroupId old : {a, b}) {
    group.before.insert(groups_[old].before.begin(), groups_[old].before.end());
    group.after.insert(groups_[old].after.begin(), groups_[old].after.end());
  }
  for (const GroupId old : {a, b}) {
    group.before.erase(old);
    group.after.erase(old);
  }
  return group;
}

/// Groups between the two positions that `from` reaches (or that reach it); false when one of them touches `to`, or when
/// there are too many.
bool Groups::search(GroupId from, GroupId to, bool forward, std::vector<GroupId>& seen) const {
  seen.clear();
  std::set<GroupId> visited;
  std::vector<GroupId> stack{from};
  const std::int64_t end = groups_[to].position;
  while (!stack.empty()) {
    const GroupId top = stack.back();
    stack.pop_back();
    for (const GroupId next : forward ? groups_[top].after : groups_[top].before) {
      if (next == to) {
        if (top != from) return false;
        continue;
      }
      const bool inside = forward ? groups_[next].position < end : groups_[next].position > end;
      if (!inside || !visited.insert(next).second) continue;
      if (visited.size() > kMaxSearch) return false;
      stack.push_back(next);
    }
  }
  seen.assign(visited.begin(), visited.end());
  return true;
}

bool Groups::merge_makes_cycle(GroupId a, GroupId b) {
  if (groups_[a].position > groups_[b].position) std::swap(a, b);
  return !search(a, b, true, forward_) || !search(b, a, false, backward_);
}

GroupId Groups::replace(GroupId a, GroupId b, Group group) {
  // Only groups between the two have to move: what b needs goes before the new group, what a feeds goes behind it.
  const auto by_position = [&](GroupId x, GroupId y) { return groups_[x].position < groups_[y].position; };
  std::sort(forward_.begin(), forward_.end(), by_position);
  std::sort(backward_.begin(), backward_.end(), by_position);
  std::vector<std::int64_t> slots{groups_[a].position, groups_[b].position};
  for (const auto* side : {&forward_, &backward_})
    for (const GroupId id : *side) slots.push_back(groups_[id].position);
  std::sort(slots.begin(), slots.end());
  for (std::size_t i = 0; i < backward_.size(); ++i) groups_[backward_[i]].position = slots[i];
  for (std::size_t i = 0; i < forward_.size(); ++i)
    groups_[forward_[i]].position = slots[slots.size() - forward_.size() + i];
  group.position = slots[backward_.size()];

  const auto id = static_cast<GroupId>(groups_.size());
  for (const UnitId unit : group.units) of_unit_[unit] = id;
  for (const GroupId other : group.before) {
    for (const GroupId old : {a, b}) groups_[other].after.erase(old);
    groups_[other].after.insert(id);
  }
  for (const GroupId other : group.after) {
    for (const GroupId old : {a, b}) groups_[other].before.erase(old);
    groups_[other].before.insert(id);
  }
  for (const GroupId old : {a, b}) {
    groups_[old].alive = false;
    groups_[old].built.reset();
  }
  groups_.push_back(std::move(group));
  return id;
}

}  // namespace fxfuser::codegen
