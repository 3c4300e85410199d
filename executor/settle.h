#pragma once
// What the caller sees of a call that raised half-way.

#include "executor/step.h"

namespace fxfuser::executor {

/// Does the writes to inputs and constants that nodes before `origin` stand for: those of a functional graph are done when all
/// steps have run, but a step that raises must leave what eager leaves. A value that no slot holds any more is computed anew
/// from the inputs, op by op. Never throws: what can't be computed is not written.
void settle_writes(const ir::Graph& graph, Slots& slots, std::uint32_t origin) noexcept;

}  // namespace fxfuser::executor
