#pragma once
// One imported module: its functional graph, lowered graphs by class of inputs, plans by exact metas.

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "executor/lower.h"
#include "executor/plan.h"

namespace fxfuser::executor {

class ProgramImpl final : public Program {
 public:
  ProgramImpl(Session& session, ImportedGraph imported);

  RunResult run(const Options& options, std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs) override;
  void run_aten(std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs) override;
  std::string explain(const Options& options, const std::vector<ir::TensorMeta>& metas, std::string_view target) override;

 private:
  using Signature = std::vector<std::int64_t>;
  struct SignatureHash {
    std::size_t operator()(const Signature& words) const;
  };
  /// Verdicts and partitions of one class; kernels that failed once stay with ATen.
  struct Class {
    std::shared_ptr<LoweredGraph> lowered;
    std::vector<std::optional<partitioner::Reason>> failed;  // by partition
  };
  struct Entry {
    Signature signature;
    Options options;
    std::shared_ptr<const Plan> plan;
  };

  /// Appends what a plan assumed of the inputs; false (with a reason) when only the module itself may run.
  bool sign(std::span<const c10::IValue> inputs, Signature& out, std::string& reason) const;
  void check_count(std::size_t given) const;
  bool writes_overlap(std::span<const c10::IValue> inputs) const;
  std::shared_ptr<const Plan> find_plan(const Signature& signature, const Options& options);
  void remember(Signature signature, const Options& options, std::shared_ptr<const Plan> plan);
  std::shared_ptr<Class> class_of(const Options& options, std::span<const c10::IValue> inputs, std::string& miss);
  bool forecast_fits(const ir::Graph& graph, std::span<const c10::IValue> inputs) const;
  /// Every node by itself, through ATen.
  void run_plain(Slots& slots, RunCounters& counters) const;
  /// Runs everything through ATen and records the metas of all values.
  ir::Graph record(Slots& slots, RunCounters& counters) const;
  void check_strict(const LoweredGraph& lowered) const;

  Slots frame(std::span<const c10::IValue> inputs, std::size_t slots) const;
  void collect(const Plan& plan, Slots& slots, std::vector<c10::IValue>& outputs) const;
  /// A kernel that does not compile is told once.
  void tell_failures(const Class& held, RunResult& result);
  /// True once since the last clear, for each of the things that a program tells of itself.
  bool tell_once(std::atomic<std::uint64_t>& told) const { return told.exchange(session_.telling()) != session_.telling(); }
  void tell_target_problems(const LoweredGraph& lowered, RunResult& result);

  Session& session_;
  ir::Graph graph_;  // functional, with the forecast
  std::vector<bool> keep_;  // slots of inputs and constants
  std::vector<std::size_t> written_;  // which inputs (constants after them) the graph writes
  std::atomic<std::uint64_t> told_gradients_{0}, told_nothing_fused_{0};
  std::mutex mutex_;
  std::list<Entry> plans_;  // most recent first
  std::unordered_map<Signature, std::vector<std::list<Entry>::iterator>, SignatureHash> by_signature_;
  std::list<std::pair<std::string, std::shared_ptr<Class>>> classes_;
};

}  // namespace fxfuser::executor
