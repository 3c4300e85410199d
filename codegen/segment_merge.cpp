// Greedy merging, most bytes saved first. A pair is tried once: it can only become possible by one of the two changing, and
// then it is another pair.

#include <algorithm>
#include <iterator>
#include <queue>
#include <set>
#include <tuple>

#include "codegen/segment_groups.h"

namespace fxfuser::codegen {
namespace {

constexpr std::size_t kMaxNodes = 96;    // of a group, so that one kernel's text and planning stay bounded
constexpr std::size_t kMaxTensors = 24;  // inputs and outputs
constexpr std::size_t kMaxChain = 64;    // units merged without looking
constexpr std::size_t kMaxChainReads = 16;
constexpr std::size_t kNearReaders = 4;  // readers of one value that are tried with each other

bool contains(const std::vector<ir::ValueId>& sorted, ir::ValueId value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

struct Pair {
  std::int64_t saved = 0;
  GroupId a = 0, b = 0;  // a < b
  /// Most bytes first; the older groups where equal.
  bool operator<(const Pair& other) const { return std::tuple(saved, other.a, other.b) < std::tuple(other.saved, a, b); }
};

class Merger {
 public:
  Merger(const Units& units, const KernelBuilder& builder, Groups& groups)
      : units_(units), builder_(builder), groups_(groups) {}

  void run() {
    for (GroupId id = 0; id < groups_.count(); ++id) push_pairs(id);
    while (!queue_.empty()) {
      const Pair pair = queue_.top();
      queue_.pop();
      if (!groups_[pair.a].alive || !groups_[pair.b].alive) continue;
      if (const GroupId id = try_merge(pair.a, pair.b); id != kNoGroup) push_pairs(id);
    }
    join_single_numbers();
  }

 private:
  bool makes_numbers(GroupId id) const {
    const Group& group = groups_[id];
    const auto is_number = [&](ir::ValueId value) { return units_.graph.meta(value).sizes.empty(); };
    return group.alive && group.space == 1 && std::all_of(group.stores.begin(), group.stores.end(), is_number) &&
           std::all_of(group.units.begin(), group.units.end(), [&](UnitId unit) { return units_.all[unit].pointwise; });
  }

  /// Groups that make single numbers have nothing in common but what they cost, a launch each.
  void join_single_numbers() {
    GroupId last = kNoGroup;
    const GroupId end = groups_.count();
    for (GroupId id = 0; id < end; ++id) {
      if (!makes_numbers(id)) continue;
      const GroupId joined = last == kNoGroup ? kNoGroup : try_merge(last, id);
      last = joined == kNoGroup ? id : joined;
    }
  }

  void push_pairs(GroupId id) {
    const Group& group = groups_[id];
    for (const GroupId other : group.before) push(id, other);
    for (const GroupId other : group.after) push(id, other);
    for (const ir::ValueId value : group.reads) push_readers(id, value);
  }

  /// Groups near this one in the list of a value's readers.
  void push_readers(GroupId id, ir::ValueId value) {
    const std::vector<UnitId>& readers = units_.readers[value];
    const auto at = std::lower_bound(readers.begin(), readers.end(), groups_[id].units.front());
    std::size_t pushed = 0;
    for (auto it = at; it != readers.begin() && pushed < kNearReaders;) pushed += push_reader(id, *--it, value);
    pushed = 0;
    for (auto it = at; it != readers.end() && pushed < kNearReaders; ++it) pushed += push_reader(id, *it, value);
  }

  std::size_t push_reader(GroupId id, UnitId reader, ir::ValueId value) {
    const GroupId other = groups_.of(reader);
    if (other == id) return 0;
    // Side by side only over the same space and where the value is a large part of it.
    if (groups_[other].space == groups_[id].space && units_.graph.meta(value).numel() * 2 >= groups_[id].space)
      push(id, other);
    return 1;
  }

  void push(GroupId x, GroupId y) {
    Pair pair{0, std::min(x, y), std::max(x, y)};
    if (!seen_.insert({pair.a, pair.b}).second) return;
    bool related = false;
    pair.saved = saved(pair.a, pair.b, related);
    if (related) queue_.push(pair);
  }

  /// Bytes that need not move when the two are one kernel.
  std::int64_t saved(GroupId a, GroupId b, bool& related) const {
    std::int64_t bytes = 0;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)})
      for (const ir::ValueId value : groups_[from].stores) {
        if (!contains(groups_[to].reads, value)) continue;
        related = true;
        bytes += units_.bytes(value) * (needed_by_others(value, a, b) ? 1 : 2);
      }
    for (const ir::ValueId value : groups_[a].reads)
      if (contains(groups_[b].reads, value)) {
        related = true;
        bytes += units_.bytes(value);
      }
    return bytes;
  }

  bool needed_by_others(ir::ValueId value, GroupId a, GroupId b) const {
    if (units_.wanted[value]) return true;
    const std::vector<UnitId>& readers = units_.readers[value];
    return std::any_of(readers.begin(), readers.end(), [&](UnitId u) { return groups_.of(u) != a && groups_.of(u) != b; });
  }

  GroupId try_merge(GroupId a, GroupId b) {
    if (groups_[a].nodes + groups_[b].nodes > kMaxNodes) return kNoGroup;
    if (groups_.merge_makes_cycle(a, b)) return kNoGroup;
    Group group = groups_.merged(a, b);
    if (group.reads.size() + group.stores.size() > kMaxTensors) return kNoGroup;
    group.built = builder_.build(group.units, group.stores);
    if (group.built->refusal) return kNoGroup;
    const Built &first = groups_.built(a), &second = groups_.built(b);
    if (!first.refusal && !second.refusal && group.built->cost > first.cost + second.cost) return kNoGroup;
    return groups_.replace(a, b, std::move(group));
  }

  const Units& units_;
  const KernelBuilder& builder_;
  Groups& groups_;
  std::priority_queue<Pair> queue_;
  std::set<std::pair<GroupId, GroupId>> seen_;
};

/// The only reader of a pointwise unit's value, when it is a pointwise unit over the same sizes.
UnitId chain_next(const Units& units, UnitId id) {
  const Unit& unit = units.all[id];
  const ir::ValueId value = units.graph.node(unit.node).outputs[0];
  if (!unit.pointwise || units.wanted[value] || units.readers[value].size() != 1) return kNoUnit;
  const UnitId next = units.readers[value][0];
  const Unit& reader = units.all[next];
  if (!reader.pointwise || !reader.after.empty()) return kNoUnit;
  // Read as it is, not through a view.
  bool direct = false;
  ir::for_each_value(units.graph.node(reader.node).args, [&](ir::ValueId arg) { direct = direct || arg == value; });
  const ir::ValueId out = units.graph.node(reader.node).outputs[0];
  return direct && units.graph.meta(value).sizes == units.graph.meta(out).sizes ? next : kNoUnit;
}

}  // namespace

std::vector<std::vector<UnitId>> premerge_chains(const Units& units) {
  const std::size_t count = units.all.size();
  std::vector<UnitId> head(count);
  std::vector<std::vector<UnitId>> members(count);
  std::vector<std::size_t> reads(count);
  for (UnitId id = 0; id < count; ++id) {
    head[id] = id;
    members[id] = {id};
    reads[id] = units.all[id].reads.size();
  }
  // A unit's only reader runs after everything that the unit's group reads, so no path can leave and come back.
  for (UnitId id = 0; id < count; ++id) {
    const UnitId next = chain_next(units, id);
    if (next == kNoUnit) continue;
    UnitId from = head[id], to = head[next];
    if (members[from].size() + members[to].size() > kMaxChain || reads[from] + reads[to] > kMaxChainReads) continue;
    if (members[from].size() < members[to].size()) std::swap(from, to);
    for (const UnitId member : members[to]) head[member] = from;
    members[from].insert(members[from].end(), members[to].begin(), members[to].end());
    reads[from] += reads[to] - 1;
    members[to].clear();
  }
  std::vector<std::vector<UnitId>> chains;
  for (UnitId id = 0; id < count; ++id) {
    std::vector<UnitId>& chain = members[head[id]];
    if (chain.empty()) continue;
    std::sort(chain.begin(), chain.end());
    if (chain.front() == id) chains.push_back(chain);
  }
  return chains;
}

void merge_groups(const Units& units, const KernelBuilder& builder, Groups& groups) {
  Merger(units, builder, groups).run();
}

}  // namespace fxfuser::codegen
