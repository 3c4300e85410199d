#pragma once
// The order in which partitions and single nodes run.

#include <vector>

#include "executor/lower.h"

namespace fxfuser::executor {

/// Units in topological order; among those that are ready the one whose last node comes first in the original graph. A wait for a
/// collective is ready only when its first reader is the next to run, so that what does not need the result runs meanwhile.
std::vector<Unit> order_units(const LoweredGraph& lowered);

}  // namespace fxfuser::executor
