#include "executor/compile_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace fxfuser::executor {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr int kWidth = 30;

}  // namespace

CompileProgress::CompileProgress(std::size_t kernels) : total_(kernels), terminal_(isatty(STDERR_FILENO) == 1) {}

CompileProgress::~CompileProgress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void CompileProgress::add(std::size_t kernels) {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ += kernels;
  if (!terminal_ || done_ >= total_ || std::chrono::steady_clock::now() - start_ < kPatience) return;
  shown_ = true;
  const auto full = static_cast<std::size_t>(kWidth) * done_ / total_;
  const std::string line = fmt::format("\rfxfuser: compiling kernels [{:-<{}}] {}/{}", std::string(full, '#'), kWidth, done_, total_);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace fxfuser::executor
