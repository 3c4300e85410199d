// The second launch of a split reduction: a warp, or several where there are many, folds the partials of a kept point in a fixed order.

#include <algorithm>
#include <bit>

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {

void emit_cuda_finish(CudaWriter& w, KernelSource& source) {
  const Fusion& fusion = w.fusion;
  constexpr int kThreads = 256, kWarpLanes = 32, kParts = 4;
  // As many lanes as have all partials on their way at once: rounds of them wait for the memory one after the other.
  const int lanes = std::clamp(static_cast<int>(std::bit_ceil(static_cast<unsigned>((w.schedule.split + kParts - 1) / kParts))), kWarpLanes, kThreads);
  const std::int64_t rows = fusion.kept_numel();
  w.value_name = [](std::uint32_t id) { return "v" + std::to_string(id); };
  w.body.linef("const int lane = fxf_thread() % {};", lanes);
  w.body.linef("const {0} row = ({0})fxf_block() * {1} + fxf_thread() / {2};", w.index(), kThreads / lanes, lanes);
  w.body.linef("const bool live = row < {};", w.params.number("rows", rows));
  const std::vector<std::size_t> kept = w.kept_axes();
  if (!kept.empty()) {
    w.body.linef("const {} here = live ? row : 0;", w.index());
    w.decompose("here", kept);
  }
  const std::string split = w.params.number("split", w.schedule.split);
  w.declare_folds(w.passes.accumulators);
  std::vector<bool> available(fusion.body.size(), false);
  std::vector<const Accumulator*> states;
  for (std::size_t i = 0; i < w.passes.accumulators.size(); ++i) {
    const Accumulator& state = w.passes.accumulators[i];
    const std::string type = w.chain_type(state), fold = w.chain_fold(state);
    w.body.linef("{} acc{} = {};", type, state.expr, w.chain_init(state));
    const std::string base = w.params.number(fmt::format("partial{}", state.expr), partial_offset(w, i));
    w.body.linef("{0} part{1}[{2}];\nFXF_UNROLL for (int u = 0; u < {2}; ++u) part{1}[u] = acc{1};", type, state.expr, kParts);
    w.body.begin(fmt::format("for (int first = lane; live && first < {}; first += {})", split, lanes * kParts));
    w.body.line("FXF_UNROLL");
    w.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", kParts));
    w.body.linef("const int slab = first + u * {};", lanes);
    w.body.linef("if (slab < {0}) part{1}[u] = {4}(part{1}[u], fxf_get_fresh((const {2}*)(workspace + {3}) + row * {0} + slab));", split, state.expr, type, base, fold);
    w.body.end();
    w.body.end();
    w.body.linef("acc{0} = fxf_fold_parts<{1}>(part{0}, {2});", state.expr, kParts, fold);
    states.push_back(&state);
  }
  w.fold_threads(states, lanes, kThreads);
  for (const Accumulator& state : w.passes.accumulators) {
    for (std::uint32_t result : state.results) {
      w.body.linef("const {} v{} = {};", register_type(fusion.body[result].dtype), result, w.finished(state, result, fmt::format("acc{}", state.expr)));
      available[result] = true;
    }
  }
  w.body.begin("if (live && lane == 0)");
  for (std::uint32_t id : needed_by_outputs(fusion, available)) w.statement(id);
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) w.store(i);
  w.body.end();
  w.close_entry(source, "_finish", (rows + kThreads / lanes - 1) / (kThreads / lanes), kThreads);
}

}  // namespace fxfuser::codegen
