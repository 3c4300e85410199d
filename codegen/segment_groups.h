#pragma once
// Groups of units that will be one kernel each: what a group reads and stores, the fusion it builds, and an order of the
// groups that is kept topological while they merge.

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/segment.h"
#include "codegen/segment_units.h"

namespace fxfuser::codegen {

using GroupId = std::uint32_t;
inline constexpr GroupId kNoGroup = 0xffffffffu;

/// A group as one kernel, or why it can't be one.
struct Built {
  Fusion fusion;
  Schedule schedule;
  double cost = 0;
  std::optional<partitioner::Reason> refusal;
};

struct Group {
  bool alive = true;
  std::vector<UnitId> units;        // ascending
  std::vector<ir::ValueId> reads;   // from outside, ascending
  std::vector<ir::ValueId> stores;  // read outside or wanted, ascending
  std::set<GroupId> before, after;
  std::int64_t space = 1;
  std::size_t nodes = 0;  // with the free ones, each counted once a unit
  std::int64_t position = 0;
  std::optional<Built> built;
};

/// Tries a set of units as one kernel.
class KernelBuilder {
 public:
  KernelBuilder(const Units& units, const ArchInfo& arch, const ScheduleOptions& options)
      : units_(units), arch_(arch), options_(options) {}
  std::vector<ir::NodeId> nodes_of(const std::vector<UnitId>& units) const;
  Built build(const std::vector<UnitId>& units, const std::vector<ir::ValueId>& stores) const;

 private:
  ScheduleOptions options_for(const Fusion& fusion) const;

  const Units& units_;
  const ArchInfo& arch_;
  const ScheduleOptions& options_;
};

class Groups {
 public:
  Groups(const Units& units, const KernelBuilder& builder, const std::vector<std::vector<UnitId>>& initial);

  const Group& operator[](GroupId id) const { return groups_[id]; }
  GroupId count() const { return static_cast<GroupId>(groups_.size()); }
  GroupId of(UnitId unit) const { return of_unit_[unit]; }
  /// The kernel of a group, built when first asked for.
  const Built& built(GroupId id);
  /// What the two would be together, without changing anything.
  Group merged(GroupId a, GroupId b) const;
  /// Would merging leave a path out of the pair and back in? Searches a bounded number of groups; unknown counts as yes.
  bool merge_makes_cycle(GroupId a, GroupId b);
  /// Replaces the two by `group`; call after merge_makes_cycle said no. Returns the new id.
  GroupId replace(GroupId a, GroupId b, Group group);

 private:
  void link();
  bool search(GroupId from, GroupId to, bool forward, std::vector<GroupId>& seen) const;
  bool read_outside(ir::ValueId value, GroupId a, GroupId b) const;
  Group make(std::vector<UnitId> units, GroupId a, GroupId b) const;

  const Units& units_;
  const KernelBuilder& builder_;
  std::vector<Group> groups_;
  std::vector<GroupId> of_unit_;
  std::vector<GroupId> forward_, backward_;  // of the last merge_makes_cycle
};

/// Groups of pointwise units along edges with one reader and equal sizes: they can merge without looking.
/// (segment_merge.cpp)
std::vector<std::vector<UnitId>> premerge_chains(const Units& units);
/// The queue of bytes saved. (segment_merge.cpp)
void merge_groups(const Units& units, const KernelBuilder& builder, Groups& groups);

/// A group once merging is over: units may now be in several.
struct FinalGroup {
  std::vector<UnitId> units;
  std::vector<ir::ValueId> reads, stores;
  Built built;
};
/// Copies cheap producers into their readers where that saves time. (segment_copy.cpp)
void copy_cheap_producers(const Units& units, const KernelBuilder& builder, std::vector<FinalGroup>& groups);

}  // namespace fxfuser::codegen
