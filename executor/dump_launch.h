#pragma once
// What the `dump` option prints at each launch: its shape, and its time with the bytes of its tensors by that time.

#include <functional>

#include "executor/options.h"
#include "executor/step.h"

namespace fxfuser::executor {

/// LaunchStep::dump for these options.
std::uint8_t launch_dump(const Options& options);

/// Calls `start`, which launches the kernel, and prints what step.dump asks for. A CUDA launch is timed with events, so the
/// call waits for it; one that is captured into a CUDA graph has not run and is told without a time.
void dump_launch(const LaunchStep& step, const Slots& slots, const std::function<void()>& start);

}  // namespace fxfuser::executor
