#pragma once
// What emitters of columns share: a run of points is in flight at once, each point and place of a pack with a fold of its own (run<id>), which
// end in the thread's folds of its places (acc<id>).

#include <vector>

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {

/// `unroll`, halved until neither the folds nor the loads of a run (`load_words` a point) take more registers than a thread can spare.
int fitting_run(const CudaWriter& writer, const std::vector<const Accumulator*>& states, int load_words);
/// Declares the thread's folds, one for each place of its packs.
void declare_places(CudaWriter& writer, const std::vector<const Accumulator*>& states);
/// Declares the folds of a run of `length` points.
void begin_run(CudaWriter& writer, const std::vector<const Accumulator*>& states, int length);
/// Where a fold of the run at point u and place e goes.
std::string run_fold(const Accumulator& state, int length);
/// The run's folds meet by halves and join the thread's.
void end_run(CudaWriter& writer, const std::vector<const Accumulator*>& states, int length);

}  // namespace fxfuser::codegen
