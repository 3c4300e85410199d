#pragma once
// The closed list of host scalar ops, with Python's semantics.

#include "executor/step.h"

namespace fxfuser::executor {

/// Throws Error(Runtime) naming an op that is not on the list.
c10::IValue run_scalar(const std::string& target, const std::vector<ir::Attr>& args, const Slots& slots);

}  // namespace fxfuser::executor
