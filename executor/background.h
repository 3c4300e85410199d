#pragma once
// Compiles that no call waits for: one thread of low priority, started on first use.

#include <atomic>
#include <functional>

namespace fxfuser::executor {

class Background {
 public:
  /// Jobs run one after the other; what they raise is lost.
  void enqueue(std::function<void()> job);
  /// Is this the thread of the jobs? A fork waits for a job, so none may wait for a lock that who forks holds (the host program's).
  static bool on_worker();
  /// Jobs that ended since start: while it stays the same, nothing new is there.
  std::uint64_t ended() const { return ended_; }
  /// Grows where what waited was dropped (by finish, or in a forked child): a job of an earlier era may never run.
  std::uint64_t era() const { return era_; }
  /// Drops what waits and waits for what runs; later jobs start the thread again.
  void finish();

 private:
  struct State;
  static void hold_for_fork();
  static void go_on_in_parent();
  static void start_anew_in_child();
  State& state();
  void work(State& state);

  std::atomic<State*> state_{nullptr};  // never destroyed: a forked child leaves the parent's behind
  std::atomic<std::uint64_t> ended_{0}, era_{1};
};

}  // namespace fxfuser::executor
