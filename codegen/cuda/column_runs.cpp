#include "codegen/cuda/column_runs.h"

#include <algorithm>

namespace fxfuser::codegen {

int fitting_run(const CudaWriter& writer, const std::vector<const Accumulator*>& states, int load_words) {
  constexpr int kWords = 64;
  int state_words = 0;
  for (const Accumulator* state : states) state_words += writer.schedule.vector * (writer.fusion.body[state->expr].row->arg_state ? 4 : 1);
  int run = writer.schedule.unroll;
  while (run > 1 && run * std::max(state_words, load_words) > kWords) run /= 2;
  return run;
}

void declare_places(CudaWriter& writer, const std::vector<const Accumulator*>& states) {
  const int vector = writer.schedule.vector;
  for (const Accumulator* state : states) {
    writer.body.linef("{} acc{}[{}];", writer.chain_type(*state), state->expr, vector);
    writer.body.linef("FXF_UNROLL for (int e = 0; e < {}; ++e) acc{}[e] = {};", vector, state->expr, writer.chain_init(*state));
  }
}

void begin_run(CudaWriter& writer, const std::vector<const Accumulator*>& states, int length) {
  const int folds = writer.schedule.vector * length;
  for (const Accumulator* state : states) {
    writer.body.linef("{} run{}[{}];", writer.accumulator_type(*state), state->expr, folds);
    writer.body.linef("FXF_UNROLL for (int e = 0; e < {}; ++e) run{}[e] = {};", folds, state->expr, writer.accumulator_init(*state));
  }
}

std::string run_fold(const Accumulator& state, int length) { return fmt::format("run{}[e * {} + u]", state.expr, length); }

void end_run(CudaWriter& writer, const std::vector<const Accumulator*>& states, int length) {
  for (const Accumulator* state : states) {
    const std::string folded = fmt::format("fxf_fold_parts<{0}>(run{1} + e * {0}, fold{1})", length, state->expr);
    writer.body.linef("FXF_UNROLL for (int e = 0; e < {0}; ++e) acc{1}[e] = {2}(acc{1}[e], {3});", writer.schedule.vector, state->expr, writer.chain_fold(*state), writer.chained(*state, folded));
  }
}

}  // namespace fxfuser::codegen
