// Inputs that are contiguous along another axis than the outputs: read through a square tile in shared memory, so that both
// sides move whole lines. Everything else is addressed as in a pointwise kernel along the outputs' innermost axis.

#include <algorithm>
#include <vector>

#include "codegen/schedule_parts.h"

namespace fxfuser::codegen {
namespace {

constexpr int kThreads = 256, kSmallTileThreads = 128;
constexpr int kHostTile = 64;
constexpr int kHostLeast = 16;  // an axis that is shorter is not worth a tile
constexpr int kTile = 64, kSmallTile = 32;
constexpr std::int64_t kTilesPerSm = 8;            // large tiles that keep an SM busy; of 16-bit elements fewer do
constexpr std::int64_t kTileBytes = 48 * 1024;     // that a block may declare
constexpr std::int64_t kPackBytes = 16;            // read at once along the tile's axis

int least_axis(const ArchInfo& arch) { return arch.target == Target::Host ? kHostLeast : kSmallTile; }

std::int64_t tile_bytes(const ArchInfo& arch) { return std::min(kTileBytes, arch.shared_per_block); }

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
  const int least = least_axis(arch);
  if (output_axis < 1 || fusion.axes.back().size < least) return best;
  std::int64_t best_bytes = 0;
  for (int axis = 0; axis < output_axis; ++axis) {
    Tiling tiling{axis, {}};
    std::int64_t bytes = 0, shared = 0;
    const std::vector<int> loads = loads_by_input(fusion);
    for (const Expr& expr : fusion.body) {
      // An input that is read twice, at different places, would need two tiles: it is read as it lies.
      if (expr.kind != ExprKind::Load || loads[expr.input] != 1 || other_axis(fusion, expr, output_axis, least) != axis)
        continue;
      const std::int64_t size = ir::itemsize(fusion.inputs[expr.input].meta.dtype);
      const std::int64_t needed = kSmallTile * (kSmallTile + 1) * size;
      if (arch.target == Target::Cuda && shared + needed > tile_bytes(arch)) continue;
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

bool is_turned(const Schedule& schedule, const Expr& expr) {
  const auto& turned = schedule.transposed_inputs;
  return expr.kind == ExprKind::Load && std::find(turned.begin(), turned.end(), expr.input) != turned.end();
}

/// Large where both axes have one, and where there are enough of them for every SM.
int tile_of(const Fusion& fusion, const ArchInfo& arch, const Schedule& schedule) {
  if (arch.target == Target::Host) return kHostTile;
  const std::int64_t across = fusion.axes.back().size, down = fusion.axes[static_cast<std::size_t>(schedule.tile_axis)].size;
  std::int64_t bytes = 0;
  for (const std::uint32_t input : schedule.transposed_inputs) bytes += kTile * (kTile + 1) * ir::itemsize(fusion.inputs[input].meta.dtype);
  if (across < kTile || down < kTile || bytes > tile_bytes(arch)) return kSmallTile;
  const std::int64_t tiles = ceil_div(across, kTile) * ceil_div(down, kTile) * (iteration_count(fusion) / (across * down));
  const std::int64_t widest = widest_itemsize(fusion);
  return widest <= 2 || (widest <= 4 && tiles >= kTilesPerSm * arch.sm_count) ? kTile : kSmallTile;
}

/// Elements that all inputs of the tile allow to be read at once along its axis, 16 bytes of the widest at most.
int tile_pack_of(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, const Schedule& schedule) {
  std::int64_t widest = 1;
  for (const std::uint32_t input : schedule.transposed_inputs) widest = std::max(widest, ir::itemsize(fusion.inputs[input].meta.dtype));
  const auto allow = [&](std::int64_t pack) {
    return std::all_of(fusion.body.begin(), fusion.body.end(), [&](const Expr& expr) { return !is_turned(schedule, expr) || loads_vectors(fusion, arch, options, expr, schedule.tile_axis, pack); });
  };
  std::int64_t pack = kPackBytes / widest;
  while (pack > 1 && !allow(pack)) pack /= 2;
  return static_cast<int>(pack);
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
  schedule.tile_axis = tiling.axis;
  schedule.transposed_inputs = std::move(tiling.inputs);
  schedule.tile = tile_of(fusion, arch, schedule);
  if (arch.target == Target::Host) {
    schedule.threads = 1;
    schedule.grain = host_grain(fusion, static_cast<std::int64_t>(schedule.tile) * schedule.tile);
  } else {
    schedule.tile_pack = tile_pack_of(fusion, arch, options, schedule);
    schedule.threads = static_cast<int>(std::min<std::int64_t>(schedule.tile == kSmallTile ? kSmallTileThreads : kThreads, floor_pow2(arch.max_threads_per_sm / 2)));
  }
  return schedule;
}

}  // namespace

Scheduler transpose_scheduler() {
  return {"transpose", refuses, plan};
}

}  // namespace fxfuser::codegen
