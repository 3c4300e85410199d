#pragma once
// The one owner of tables, caches and counters. The library makes a default one on first use; tests make their own.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/arch.h"
#include "executor/interface/fxfuser.h"
#include "executor/background.h"
#include "executor/kernel_cache.h"
#include "partitioner/capability.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::executor {

struct PlanCounters {
  std::uint64_t launches_cuda = 0, launches_host = 0, aten_steps = 0, view_steps = 0, missing_kernels = 0, graph_replays = 0;
};

class Session {
 public:
  explicit Session(const std::string& cache_folder);

  ir::OpTable ops;
  partitioner::CapabilityTable capability;
  KernelCache kernels;
  Background background;

  /// What a device can do; for a device that is not there a generic one of its kind.
  codegen::ArchInfo arch(const ir::Device& device);
  /// Why a target can't run here; empty when it can.
  std::string target_problem(codegen::Target target);
  /// What a user of a target that does run should know of this machine: a cache folder or a compiler that is not used.
  std::vector<std::string> machine_notes(codegen::Target target) const;

  /// How the host program captures CUDA graphs; null while it has not said. Set once, at load.
  std::shared_ptr<GraphCapture> graph_capture;

  /// How the host program writes a group as a definition; empty while it has not said. Set once, at load.
  GroupPrinter group_printer;
  /// Numbers of printed groups, from 1.
  std::atomic<int> printed_groups{0};

  /// The host program's log; null while there is none.
  std::shared_ptr<LogSink> log;

  /// CPU tensors take CUDA kernels that are emulated (tests).
  void emulate(codegen::Emulation emulation);

  /// What a plan that lacks kernels compares: while it stays the same, no more are there.
  std::uint64_t present(const Options& options) const { return options.compile == CompilePolicy::Async ? background.ended() : kernels.version(); }

  /// A call that a plan took: why it was planned anew, empty when it was not.
  void count_call(const std::string& miss_reason);
  /// A call that the module itself must take.
  void count_fallback();
  void count_steps(const PlanCounters& counters, const std::vector<std::string>* names);
  Stats stats();
  void reset_stats();
  std::atomic<bool> recording{false};

  /// The number of a kernel in what is printed: from 1, in the order in which kernels are first asked for.
  int kernel_number(const std::string& name);
  /// True the first time a text is told since the last clear. For causes in the machine and the environment: texts are kept.
  bool tell_once(const std::string& text);
  /// Grows at each clear: what a program has told once it may tell again.
  std::uint64_t telling() const { return telling_; }
  void clear(bool disk);

 private:
  std::mutex mutex_;
  /// What every call counts: without the lock.
  struct Running {
    std::atomic<std::uint64_t> plan_hits{0}, launches_cuda{0}, launches_host{0}, aten_steps{0}, view_steps{0}, graph_replays{0};
  };
  Running running_;
  Stats stats_;  // the rest
  CacheCounters base_;  // kernel counters at the last reset
  std::set<std::string> told_;
  std::atomic<std::uint64_t> telling_{1};
  std::map<std::string, int> kernel_numbers_;
  std::map<int, codegen::ArchInfo> devices_;
  std::optional<codegen::ArchInfo> emulated_;
};

}  // namespace fxfuser::executor
