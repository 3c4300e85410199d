#pragma once
// A plan is discovered by running: ATen steps really run and their results' true metas are read; each partition is planned on
// exact metas when it is reached, and what was done becomes the plan.

#include <map>
#include <optional>

#include "executor/lower.h"
#include "executor/plan.h"
#include "executor/value_memory.h"

namespace fxfuser::executor {

class Discovery {
 public:
  /// `failed` is by partition: reasons of those that stay with ATen (filled on the way).
  Discovery(Session& session, const LoweredGraph& lowered, std::vector<std::optional<partitioner::Reason>>& failed, const Options& options)
      : session_(session), lowered_(lowered), failed_(failed), options_(options) {}

  /// Compiles, in parallel, what the forecast says will be needed.
  void prefetch();
  /// Runs the units from `first` on; the frame holds what earlier ones made. Returns the plan of those units. A value is freed
  /// after the last unit that reads it, unless `keep_all`.
  Plan run(Slots& slots, std::uint32_t first, RunCounters& counters, bool keep_all = false);
  /// Of the values that the run has made; null where a profiler kept it from being seen.
  const ValueMemory* memory() const { return watched_ ? &memory_ : nullptr; }

 private:
  /// What a group's plan depends on beside the class, and the plan with its kernels (none: a kernel is missing).
  struct PlannedGroup {
    std::vector<ir::TensorMeta> metas;
    std::vector<int> alignment;
    std::vector<std::optional<std::int64_t>> numbers;
    GroupPlan plan;
    std::vector<std::shared_ptr<CompiledKernel>> kernels;
  };
  /// Plans a partition on the values at hand, or finds that an equal one was planned on equal inputs.
  const PlannedGroup& planned(std::size_t index, const Slots& slots, RunCounters& counters);
  void partition(std::size_t index, std::uint32_t unit, Slots& slots, RunCounters& counters);
  void node(ir::NodeId id, std::uint32_t unit, Slots& slots, RunCounters& counters);
  void through_aten(std::size_t index, std::uint32_t unit, Slots& slots, RunCounters& counters);
  /// The kernels of a group; none when some are missing and may not be compiled.
  std::vector<std::shared_ptr<CompiledKernel>> kernels_of(const GroupPlan& group, const partitioner::Partition& partition, RunCounters& counters);
  void add_group(const GroupPlan& group, const std::vector<std::shared_ptr<CompiledKernel>>& kernels, std::size_t index, std::uint32_t unit, Slots& slots, RunCounters& counters);
  void execute(Step step, Slots& slots, RunCounters& counters);
  /// By unit: what no later unit reads of the graph's values that units make.
  std::vector<std::vector<SlotId>> last_reads() const;
  std::vector<SlotId> place_values(const GroupPlan& group, const partitioner::Partition& partition, Slots& slots);
  LaunchStep launch_step(const GroupPlan& group, std::size_t segment, const std::vector<SlotId>& slot_of, std::shared_ptr<CompiledKernel> kernel) const;
  /// Is an integer given by what the plan's key holds: integer inputs and the inputs' sizes?
  bool is_keyed(ir::ValueId value, const Slots& slots) const;
  std::vector<std::optional<std::int64_t>> input_numbers(const partitioner::Partition& partition, const Slots& slots) const;
  std::vector<ir::TensorMeta> input_metas(const partitioner::Partition& partition, const Slots& slots) const;

  Session& session_;
  const LoweredGraph& lowered_;
  std::vector<std::optional<partitioner::Reason>>& failed_;
  const Options& options_;
  std::vector<std::shared_ptr<CompiledKernel>> prefetched_;  // held, so that the cache keeps them until they are asked for
  Plan plan_;
  ValueMemory memory_;
  bool watched_ = true;
  std::multimap<std::uint32_t, PlannedGroup> groups_;  // of this run, by twin
};

/// Geometry of a view inside a canonical graph, from a value back to `source`.
struct ViewGeometry {
  ir::Sizes sizes, strides;
  std::int64_t offset = 0;
};
ViewGeometry view_geometry(const ir::Graph& canonical, ir::ValueId value, ir::ValueId source);

}  // namespace fxfuser::executor
