#pragma once
// PyTorch's own thread pool, behind a function: the one unit that is compiled with OpenMP.

#include <cstdint>

namespace fxfuser::executor {

using RangeFunction = void (*)(const void* params, long long begin, long long end);

/// Calls function(params, begin, end) over [0, count) in ranges of at least `grain`, on at::parallel_for's threads.
void parallel_ranges(RangeFunction function, const void* params, std::int64_t count, std::int64_t grain);
int host_threads();

}  // namespace fxfuser::executor
