// A cheap producer whose value several groups read is computed by each of them, where reading its operands moves fewer
// bytes than storing and reading its value.

#include <algorithm>
#include <map>
#include <set>

#include "codegen/segment_groups.h"

namespace fxfuser::codegen {
namespace {

constexpr int kMaxSlots = 12;  // of all the units that are copied for one value
constexpr std::size_t kMaxReaders = 8;
constexpr std::size_t kMaxTensors = 24;

class Copier {
 public:
  Copier(const Units& units, const KernelBuilder& builder, std::vector<FinalGroup>& groups)
      : units_(units), builder_(builder), groups_(groups) {}

  void run() {
    owner_.assign(units_.graph.values.size(), kNone);
    readers_.resize(units_.graph.values.size());
    std::vector<ir::ValueId> values;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      values.insert(values.end(), groups_[g].stores.begin(), groups_[g].stores.end());
      enter(g);
    }
    std::sort(values.begin(), values.end());
    for (const ir::ValueId value : values) try_value(value);
    std::erase_if(groups_, [](const FinalGroup& group) { return group.stores.empty(); });
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void enter(std::size_t g) {
    for (const ir::ValueId value : groups_[g].stores) owner_[value] = g;
    for (const ir::ValueId value : groups_[g].reads) readers_[value].insert(g);
  }

  void leave(std::size_t g) {
    for (const ir::ValueId value : groups_[g].stores) owner_[value] = kNone;
    for (const ir::ValueId value : groups_[g].reads) readers_[value].erase(g);
  }

  /// Is the value in memory when a later group runs?
  bool in_memory(ir::ValueId value) const { return units_.producer(value) == kNoUnit || owner_[value] != kNone; }

  /// The units to copy for a value: its producer and what that reads of values which are nowhere in memory. False when that
  /// isn't cheap.
  bool copied_units(ir::ValueId value, std::vector<UnitId>& copied) const {
    std::vector<ir::ValueId> open{value};
    int slots = 0;
    while (!open.empty()) {
      const UnitId unit = units_.producer(open.back());
      open.pop_back();
      if (std::find(copied.begin(), copied.end(), unit) != copied.end()) continue;
      if (!units_.all[unit].cheap || !units_.all[unit].after.empty()) return false;
      if ((slots += units_.all[unit].slots) > kMaxSlots) return false;
      copied.push_back(unit);
      for (const ir::ValueId read : units_.all[unit].reads)
        if (!in_memory(read)) open.push_back(read);
    }
    std::sort(copied.begin(), copied.end());
    return true;
  }

  /// A group made of these units that stores these values: what it reads, and only what is needed.
  FinalGroup make(std::vector<UnitId> units, std::vector<ir::ValueId> stores) const {
    FinalGroup group;
    std::vector<ir::ValueId> needed = stores;
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
    for (std::size_t i = units.size(); i-- > 0;) {
      const Unit& unit = units_.all[units[i]];
      const std::vector<ir::ValueId>& outs = units_.graph.node(unit.node).outputs;
      const bool live = std::any_of(outs.begin(), outs.end(), [&](ir::ValueId out) {
        return std::find(needed.begin(), needed.end(), out) != needed.end();
      });
      if (!live) continue;
      group.units.push_back(units[i]);
      needed.insert(needed.end(), unit.reads.begin(), unit.reads.end());
    }
    std::reverse(group.units.begin(), group.units.end());
    for (const ir::ValueId value : needed) {
      const UnitId producer = units_.producer(value);
      if (producer == kNoUnit || !std::binary_search(group.units.begin(), group.units.end(), producer))
        group.reads.push_back(value);
    }
    std::sort(group.reads.begin(), group.reads.end());
    group.reads.erase(std::unique(group.reads.begin(), group.reads.end()), group.reads.end());
    group.stores = std::move(stores);
    return group;
  }

  std::int64_t bytes_of(const FinalGroup& group) const {
    std::int64_t bytes = 0;
    for (const auto* list : {&group.reads, &group.stores})
      for (const ir::ValueId value : *list) bytes += units_.bytes(value);
    return bytes;
  }

  void try_value(ir::ValueId value) {
    if (units_.wanted[value]) return;
    const std::size_t home = owner_[value];
    std::vector<UnitId> copied;
    if (home == kNone || readers_[value].size() > kMaxReaders || !copied_units(value, copied)) return;
    std::map<std::size_t, FinalGroup> changed;
    std::int64_t before = bytes_of(groups_[home]), after = 0;
    for (const std::size_t g : readers_[value]) {
      std::vector<UnitId> all = groups_[g].units;
      all.insert(all.end(), copied.begin(), copied.end());
      before += bytes_of(groups_[g]);
      changed[g] = make(std::move(all), groups_[g].stores);
      if (changed[g].reads.size() + changed[g].stores.size() > kMaxTensors) return;
    }
    std::vector<ir::ValueId> kept = groups_[home].stores;
    std::erase(kept, value);
    changed[home] = make(groups_[home].units, std::move(kept));
    for (const auto& [g, group] : changed) after += bytes_of(group);
    if (after >= before || !accept(changed)) return;
    for (auto& [g, group] : changed) {
      leave(g);
      groups_[g] = std::move(group);
    }
    for (const auto& [g, group] : changed) enter(g);
  }

  /// Builds the changed groups; true when all are kernels and take no longer than before.
  bool accept(std::map<std::size_t, FinalGroup>& changed) const {
    double before = 0, after = 0;
    for (auto& [g, group] : changed) {
      before += groups_[g].built.cost;
      if (group.stores.empty()) continue;
      group.built = builder_.build(group.units, group.stores);
      if (group.built.refusal) return false;
      after += group.built.cost;
    }
    return after <= before;
  }

  const Units& units_;
  const KernelBuilder& builder_;
  std::vector<FinalGroup>& groups_;
  std::vector<std::size_t> owner_;              // by value: the group that stores it
  std::vector<std::set<std::size_t>> readers_;  // by value: the groups that load it
};

}  // namespace

void copy_cheap_producers(const Units& units, const KernelBuilder& builder, std::vector<FinalGroup>& groups) {
  Copier(units, builder, groups).run();
}

}  // namespace fxfuser::codegen
