#pragma once
// A rough time of one kernel, only good for comparing ways to cut the same graph: memory traffic at the bandwidth that the
// launch can draw, or issue slots where they take longer, and the launch.

#include "codegen/arch.h"
#include "codegen/fusion.h"
#include "codegen/schedule.h"

namespace fxfuser::codegen {

double estimate_ns(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch);

}  // namespace fxfuser::codegen
