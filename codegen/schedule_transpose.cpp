// Inputs that are contiguous along another axis than the outputs: read through a square tile in shared memory, so that both
// sides move whole lines. Everything else is addressed as in a pointwise kernel along the outputs' innermost axis.

#include <algorithm>
#include <vector>

#include "codegen/schedule_parts.h"

namespace fxfuser::codegen {
namespace {

constexpr int kThreads = 256;
constexpr int kHostTile = 64;
constexpr int kHostLeast = 16;  // an axis that is shorter is not worth a tile

int least_axis(const ArchInfo& arch, int tile) { return arch.target == Target::Host ? kHostLeast : tile; }

int tile_of(const Fusion& fusion, const ArchInfo& arch) {
  if (arch.target == Target::Host) return kHostTile;
  int tile = widest_itemsize(fusion) <= 2 ? 64 : 32;
  // A tile and its padding for one input at least.
  while (tile > 8 && static_cast<std::int64_t>(tile) * (tile + 1) * widest_itemsize(fusion) > arch.shared_per_block)
    tile /= 2;
  return tile;
}

/// The axis that inputs should be tiled along: the one, other than the outputs', in which most bytes are contiguous.
struct Tiling {
  int axis = -1;
  std::vector<std::uint32_t> inputs;
};

/// An axis along which this load is contiguous while the outputs' axis is strided in it; -1 when none.
int other_axis(const Fusion& fusion, const Expr& load, int output_axis, int least) {
  if (coefficient(load.form, output_axis) == 0 || coefficient(load.form, output_axis) == 1) return -1;
  if (!load.bounds.empty() || !load.indirect.empty()) return -1;
  for (int a = 0; a < static_cast<int>(fusion.axes.size()); ++a)
    if (a != output_axis && load.form.coeff[static_cast<std::size_t>(a)] == 1 &&
        fusion.axes[static_cast<std::size_t>(a)].size >= least)
      return a;
  return -1;
}

Tiling find_tiling(const Fusion& fusion, const ArchInfo& arch) {
  Tiling best;
  const int output_axis = static_cast<int>(fusion.axes.size()) - 1;
  const int tile = tile_of(fusion, arch);
  const int least = least_axis(arch, tile);
  if (output_axis < 1 || fusion.axes.back().size < least) return best;
  std::int64_t best_bytes = 0;
  const std::int64_t room = arch.target == Target::Host ? 0 : arch.shared_per_block;
  for (int axis = 0; axis < output_axis; ++axis) {
    Tiling tiling{axis, {}};
    std::int64_t bytes = 0, shared = 0;
    const std::vector<int> loads = loads_by_input(fusion);
    for (const Expr& expr : fusion.body) {
      // An input that is read twice, at different places, would need two tiles: it is read as it lies.
      if (expr.kind != ExprKind::Load || loads[expr.input] != 1 || other_axis(fusion, expr, output_axis, least) != axis)
        continue;
      const std::int64_t size = ir::itemsize(fusion.inputs[expr.input].meta.dtype);
      const std::int64_t needed = static_cast<std::int64_t>(tile) * (tile + 1) * size;
      if (arch.target == Target::Cuda && shared + needed > room) continue;
      shared += needed;
      bytes += size;
      tiling.inputs.push_back(expr.input);
    }
    if (bytes > best_bytes) {
      best_bytes = bytes;
      best = tiling;
    }
  }
  std::sort(best.inputs.begin(), best.inputs.end());
  return best;
}

/// A 16-bit element a lane is half of what a warp can move at once: pairs are read along the tile's axis and stored along the
/// outputs', where all sizes and addresses are even.
bool moves_pairs(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, const Schedule& schedule) {
  constexpr int kLeastTile = 32;
  if (arch.target == Target::Host || schedule.tile < kLeastTile || schedule.vector < 2) return false;
  if (std::find(schedule.vector_output.begin(), schedule.vector_output.end(), false) != schedule.vector_output.end()) return false;
  const int inner = static_cast<int>(fusion.axes.size()) - 1;
  return std::all_of(fusion.body.begin(), fusion.body.end(), [&](const Expr& expr) {
    const auto& turned = schedule.transposed_inputs;
    if (expr.kind != ExprKind::Load || std::find(turned.begin(), turned.end(), expr.input) == turned.end()) return true;
    return ir::itemsize(fusion.inputs[expr.input].meta.dtype) <= 2 && coefficient(expr.form, inner) != 0 &&
           loads_vectors(fusion, arch, options, expr, schedule.tile_axis, 2);
  });
}

std::optional<partitioner::Reason> refuses(const Fusion& fusion, const ArchInfo& arch) {
  if (has_reduce(fusion)) return no_schedule("has a reduction");
  if (auto reason = refuse_any(fusion)) return reason;
  const int axis = static_cast<int>(fusion.axes.size()) - 1;
  for (const FusionOutput& output : fusion.outputs)
    if (coefficient(output.form, axis) != 1) return no_schedule("an output is not contiguous along the innermost axis");
  if (find_tiling(fusion, arch).axis < 0)
    return no_schedule("no input that is contiguous along another axis than the outputs");
  return std::nullopt;
}

Schedule plan(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options) {
  Schedule schedule;
  schedule.kind = ScheduleKind::Transpose;
  schedule.index_bits = choose_index_bits(fusion);
  choose_vector(fusion, arch, options, static_cast<int>(fusion.axes.size()) - 1, schedule);
  Tiling tiling = find_tiling(fusion, arch);
  schedule.tile = tile_of(fusion, arch);
  schedule.tile_axis = tiling.axis;
  schedule.transposed_inputs = std::move(tiling.inputs);
  schedule.tile_pack = moves_pairs(fusion, arch, options, schedule) ? 2 : 1;
  if (arch.target == Target::Host) {
    schedule.threads = 1;
    schedule.grain = host_grain(fusion, static_cast<std::int64_t>(schedule.tile) * schedule.tile);
  } else {
    schedule.threads = static_cast<int>(std::min<std::int64_t>(kThreads, floor_pow2(arch.max_threads_per_sm / 2)));
  }
  return schedule;
}

}  // namespace

Scheduler transpose_scheduler() {
  return {"transpose", refuses, plan};
}

}  // namespace fxfuser::codegen
