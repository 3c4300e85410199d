#pragma once
// Temporaries of generated steps lie in one planned block a call (one a device), which the first of them allocates and the last
// reader frees. Results of a call, what ATen returns, and what something outside the plan may keep stay apart from it. Where one
// block would raise the plan's peak, because it outlives its values while others come, there are several, each for a part of the steps.

#include "executor/plan.h"
#include "executor/value_memory.h"

namespace fxfuser::executor {

/// Gives temporaries their places. `plan` has its lifetimes (set_lifetimes); slots in `keep` outlive the call.
void plan_memory(Plan& plan, const ValueMemory& memory, const std::vector<bool>& keep);

}  // namespace fxfuser::executor
