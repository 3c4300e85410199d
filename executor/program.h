#pragma once
// One imported module: its functional graph, lowered graphs by class of inputs, plans by exact metas.

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "executor/lower.h"
#include "executor/plan_cache.h"
#include "executor/value_memory.h"

namespace fxfuser::executor {

class ProgramImpl final : public Program {
 public:
  ProgramImpl(Session& session, ImportedGraph imported);

  RunResult run(const Options& options, std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs, HostLock* lock) override;
  RunResult run_boxed(const Options& options, std::vector<c10::IValue>& inputs, std::vector<c10::IValue>& outputs, HostLock* lock) override;
  void run_aten(std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs) override;
  std::string explain(const Options& options, const std::vector<ir::TensorMeta>& metas, std::string_view target) override;
  std::size_t warm(const Options& options, const std::vector<ir::TensorMeta>& metas, std::string_view arch, const std::string& pack) override;

 private:
  /// Verdicts and partitions of one class; kernels that failed once stay with ATen.
  struct Class {
    std::shared_ptr<LoweredGraph> lowered;
    std::vector<std::optional<partitioner::Reason>> failed;  // by partition
    std::atomic<std::uint64_t> preparing{0};  // the era of the background job that makes its kernels
    std::atomic<bool> prepared{false};
  };
  /// What one call carries along.
  struct Call {
    const Options& options;
    std::span<const c10::IValue> inputs;
    std::vector<c10::IValue>& outputs;
    SignatureWords signature;
    RunCounters counters;
    std::vector<std::string> names;
    std::vector<c10::IValue>* given = nullptr;  // `inputs`, where the caller gave them up
  };

  RunResult run_call(Call& call, HostLock* lock);
  void check_count(std::size_t given) const;
  /// The module itself must run. Throws Error(Value) under strict.
  RunResult refuse(const Options& options, RunResult&& result);
  /// Each runs the call; why it was no plain hit (empty when it was).
  std::string run_plan(const Plan& plan, Call& call);
  std::string run_miss(Call& call, RunResult& result);
  /// Through ATen while the kernels that the forecast says will be needed compile in the background.
  std::string run_meanwhile(const std::shared_ptr<Class>& held, Call& call);
  /// Lifetimes, memory, and into the cache.
  void finish_plan(Plan& plan, const Call& call, const ValueMemory* memory = nullptr);
  /// By input: the last unit that reads it; nullopt where it is returned.
  std::vector<std::pair<SlotId, std::optional<std::uint32_t>>> last_units_of_inputs(const LoweredGraph& lowered, const Plan& plan) const;
  /// No forecast for this class, and it must run to be known: through ATen, recording the metas that the next one is planned with.
  std::string run_recording(Call& call);
  /// When the work raises, the writes that eager would have done by then are done.
  template <typename Work>
  auto settled(Slots& slots, const RunCounters& counters, Work&& work) const;
  std::shared_ptr<Class> class_of(const Options& options, std::span<const c10::IValue> inputs, std::string& miss);
  /// Every node by itself, through ATen.
  Plan run_plain(Slots& slots, RunCounters& counters, bool keep_all = false) const;
  /// Runs everything through ATen and records the metas of all values.
  ir::Graph record(Slots& slots, RunCounters& counters) const;
  void check_strict(const LoweredGraph& lowered) const;

  Slots frame(std::span<const c10::IValue> inputs, std::size_t slots) const;
  void collect(std::span<const ir::Attr> from, Slots& slots, std::vector<c10::IValue>& outputs) const;
  void raise_versions(std::span<const ir::Attr> from, const std::vector<c10::IValue>& outputs) const;
  /// A kernel that does not compile is told once.
  void tell_failures(const Class& held, RunResult& result);
  /// True once since the last clear, for each of the things that a program tells of itself.
  bool tell_once(std::atomic<std::uint64_t>& told) const { return told.exchange(session_.telling()) != session_.telling(); }
  /// A call that no plan took, or not to its end.
  struct Miss {
    std::string reason;
    std::optional<PlanKey> before;  // of the plan used before
    PlanKey now;
  };
  /// Kept for the report. A line for the log, and advice when there have been several of a kind.
  void note_miss(Miss miss);
  std::vector<KeyDifference> differences(const Miss& miss) const;
  static std::string text_of(const Miss& miss, const std::vector<KeyDifference>& differences);
  std::vector<std::string> input_names() const;
  /// The graph as a call with these inputs and constants would find it (none: the forecast), moved to a target ("": where it is),
  /// and the class of such calls (null: none ran).
  std::pair<ir::Graph, std::shared_ptr<Class>> described(const std::vector<ir::TensorMeta>& metas, std::string_view target);
  void tell_target_problems(const LoweredGraph& lowered, RunResult& result);

  Session& session_;
  ir::Graph graph_;  // functional, with the forecast
  std::vector<SlotId> input_slots_;  // of inputs and constants, in order
  std::vector<bool> keep_;  // slots of inputs and constants
  std::vector<std::size_t> written_;  // which inputs (constants after them) the graph writes
  PlanCache plans_;
  std::atomic<std::uint64_t> told_gradients_{0}, told_nothing_fused_{0};
  std::mutex mutex_;  // of what follows
  std::weak_ptr<PlanGraph> last_graph_;  // of the plan made last under `cuda_graph`
  std::list<std::pair<std::string, std::shared_ptr<Class>>> classes_;
  std::optional<Miss> last_miss_;
  std::map<std::string, int> misses_;  // by field of the key
};

}  // namespace fxfuser::executor
