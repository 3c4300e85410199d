#pragma once
// One line at a terminal while a first call compiles for more than two seconds; nothing in logs.

#include <chrono>
#include <cstddef>
#include <mutex>

namespace fxfuser::executor {

class CompileProgress {
 public:
  explicit CompileProgress(std::size_t kernels);
  /// Takes the line away again.
  ~CompileProgress();
  CompileProgress(const CompileProgress&) = delete;
  CompileProgress& operator=(const CompileProgress&) = delete;
  /// `kernels` more are compiled. Called from several threads.
  void add(std::size_t kernels);

 private:
  std::mutex mutex_;
  std::size_t done_ = 0, total_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool terminal_, shown_ = false;
};

}  // namespace fxfuser::executor
