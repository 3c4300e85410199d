#include "executor/host_parallel.h"

#include <ATen/Parallel.h>

namespace fxfuser::executor {

void parallel_ranges(RangeFunction function, const void* params, std::int64_t count, std::int64_t grain) {
  if (count <= 0) return;
  if (count <= grain) {
    function(params, 0, count);
    return;
  }
  at::parallel_for(0, count, grain, [&](std::int64_t begin, std::int64_t end) { function(params, begin, end); });
}

int host_threads() { return at::get_num_threads(); }

}  // namespace fxfuser::executor
