#pragma once
// A flat program over numbered slots. Immutable once built; a call has a frame of its own, so one plan serves many threads.

#include <optional>
#include <vector>

#include "executor/step.h"

namespace fxfuser::executor {

struct RunCounters {
  std::uint64_t launches_cuda = 0, launches_host = 0, aten_steps = 0, view_steps = 0, missing_kernels = 0, graph_replays = 0;
  std::uint32_t origin = 0;                     // of the step that runs, or that raised
  std::vector<std::string>* kernels = nullptr;  // filled while recording is on
};

class PlanGraph;

class Plan {
 public:
  std::vector<Step> steps;
  std::size_t slot_count = 0;
  std::vector<ir::Attr> outputs;
  // Kernels that were not in the cache and might not be compiled: with another version of the cache the plan is made anew.
  std::uint64_t missing_kernels = 0, cache_version = 0;
  std::shared_ptr<PlanGraph> graph;  // set under the option cuda_graph
  std::shared_ptr<void> made_for;  // what the program goes on with when a result differs
  bool brief = false;  // only launches that are short on the calling thread, views and host numbers: it runs under the host's lock

  /// Runs the steps on a frame whose inputs and constants are set. Returns the unit to go on from as a miss when an ATen
  /// result's meta differs from what this plan was made for; nullopt when all ran.
  /// `give_up`: inputs are freed after their last use.
  std::optional<std::uint32_t> run(Slots& slots, RunCounters& counters, bool give_up = false) const;
};

/// A tensor's elements by their size.
std::int64_t bytes_of(const ir::TensorMeta& meta);
/// Elements by their size, over the tensors that a launch reads and writes by pointer.
std::int64_t tensor_bytes(const LaunchStep& step);
/// Runs one step; false when a guard does not hold (nothing was done then).
bool run_step(const Step& step, Slots& slots, RunCounters& counters);
/// Sets free_after of every step: slots that nothing later reads. Inputs and outputs of the graph are never freed.
void set_lifetimes(Plan& plan, const std::vector<bool>& keep);
/// What a plan takes in memory, about.
std::size_t bytes_of(const Plan& plan);
/// Sets inputs_after of every step: `last_unit` is the last unit that reads an input, none where it has to be kept.
void set_input_lifetimes(Plan& plan, const std::vector<std::pair<SlotId, std::optional<std::uint32_t>>>& last_unit);
/// See Plan::brief.
bool is_brief(const Plan& plan);
/// What a step reads and writes.
void for_each_read(const Step& step, const std::function<void(SlotId)>& fn);
void for_each_write(const Step& step, const std::function<void(SlotId)>& fn);

}  // namespace fxfuser::executor
