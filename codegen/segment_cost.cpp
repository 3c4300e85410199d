#include "codegen/segment_cost.h"

#include <algorithm>
#include <vector>

#include "codegen/schedule_parts.h"

namespace fxfuser::codegen {
namespace {

// Orders of magnitude of an H200 and of a server core; only ratios enter the decisions.
constexpr double kBytesPerNsPerSm = 32.0;
constexpr double kSlotsPerNsPerSm = 190.0;
constexpr double kLaunchNs = 2000.0;
constexpr double kHostBytesPerNs = 8.0;
constexpr double kHostSlotsPerNs = 24.0;
constexpr double kHostLaunchNs = 1500.0;
constexpr double kStrided = 4.0;  // whole sectors (lines on the host) move for one element
constexpr double kReread = 0.4;   // of a row that was read a moment ago
constexpr std::int64_t kHostCache = 256 * 1024;

double footprint(const Fusion& fusion, std::uint64_t axes) {
  double points = 1;
  for (std::size_t a = 0; a < fusion.axes.size(); ++a)
    if ((axes & axis_bit(a)) != 0) points *= static_cast<double>(fusion.axes[a].size);
  return points;
}

/// Times that the whole row is read: once while it stays on chip.
double row_passes(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch, std::int64_t row_bytes) {
  if (schedule.kind != ScheduleKind::Normalization || schedule.tier != Tier::MultiPass) return 1;
  const double again = schedule.online ? least_rounds(fusion, arch) : reduce_rounds(fusion);
  const std::int64_t near = arch.target == Target::Host ? kHostCache : arch.l2_bytes / std::max(arch.sm_count * 2, 1);
  return 1 + again * (row_bytes <= near ? (arch.target == Target::Host ? 0.1 : kReread) : 1.0);
}

bool strided(const Fusion& fusion, const Affine& form, std::int64_t itemsize) {
  if (fusion.axes.empty()) return false;
  const std::int64_t step = std::abs(coefficient(form, static_cast<int>(fusion.axes.size()) - 1));
  return step * itemsize >= 32;
}

double traffic(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch) {
  std::vector<double> read(fusion.inputs.size(), 0), factor(fusion.inputs.size(), 1);
  std::int64_t row_bytes = 0;
  const std::uint64_t reduced = fusion.reduced_mask();
  for (const Expr& expr : fusion.body) {
    if (expr.kind != ExprKind::Load) continue;
    const ir::TensorMeta& meta = fusion.inputs[expr.input].meta;
    const std::int64_t size = ir::itemsize(meta.dtype);
    read[expr.input] += footprint(fusion, expr.depends) * static_cast<double>(size);
    const bool tiled = std::find(schedule.transposed_inputs.begin(), schedule.transposed_inputs.end(), expr.input) !=
                       schedule.transposed_inputs.end();
    if (!tiled && strided(fusion, expr.form, size)) factor[expr.input] = kStrided;
    if ((expr.depends & reduced) != 0) row_bytes += size * fusion.reduced_numel();
  }
  const double passes = row_passes(fusion, schedule, arch, row_bytes);
  double bytes = 0;
  for (std::size_t i = 0; i < read.size(); ++i) {
    const ir::TensorMeta& meta = fusion.inputs[i].meta;
    bytes += std::min(read[i], static_cast<double>(meta.numel() * ir::itemsize(meta.dtype))) * factor[i] * passes;
  }
  for (const FusionOutput& output : fusion.outputs) {
    const std::int64_t size = ir::itemsize(output.meta.dtype);
    bytes += static_cast<double>(output.meta.numel() * size) * (strided(fusion, output.form, size) ? kStrided : 1);
    // Partial columns, written and read again.
    if (fusion.body[output.expr].folds_columns) bytes += 16.0 * schedule.slabs * schedule.rows_per_block * static_cast<double>(output.meta.numel());
  }
  return bytes;
}

/// Blocks of the launch.
double grid(const Fusion& fusion, const Schedule& s) {
  const double across = fusion.axes.empty() ? 1 : static_cast<double>(std::max<std::int64_t>(fusion.axes.back().size, 1));
  const double kept = static_cast<double>(std::max<std::int64_t>(fusion.kept_numel(), 1));
  switch (s.kind) {
    case ScheduleKind::Pointwise:
      return std::max(1.0, static_cast<double>(iteration_count(fusion)) / (s.threads * s.vector * s.unroll));
    case ScheduleKind::Interleave:
      return std::max(1.0, static_cast<double>(iteration_count(fusion)) / (s.threads * s.vector * static_cast<double>(fusion.axes[static_cast<std::size_t>(s.short_axis)].size)));
    case ScheduleKind::Transpose:
      return std::max(1.0, static_cast<double>(iteration_count(fusion)) / (s.tile * s.tile));
    case ScheduleKind::Reduction:
    case ScheduleKind::Normalization:
      if (s.teams > 0) return static_cast<double>(s.teams) * s.cluster;
      if (s.inner) return std::max(1.0, kept / s.rows_per_block) * s.split * s.cluster;
      return static_cast<double>(ceil_div(static_cast<std::int64_t>(across), s.threads_per_row * s.vector)) *
             (kept / across) * s.split;
  }
  return 1;
}

/// Share of the bandwidth that the bytes in flight can draw.
double utilisation(const Fusion& fusion, const Schedule& s, const ArchInfo& arch) {
  const double resident =
      std::min(grid(fusion, s), arch.sm_count * static_cast<double>(arch.max_threads_per_sm) / s.threads);
  const double each = static_cast<double>(s.vector) * static_cast<double>(widest_itemsize(fusion)) * s.unroll *
                      (s.kind == ScheduleKind::Normalization ? s.vectors_per_thread : 1) * std::max(s.stages - 1, 1);
  const double in_flight = resident * s.threads * each;
  const double needed = static_cast<double>(arch.bytes_in_flight) * arch.sm_count * 0.5;
  const double covered = std::min(1.0, grid(fusion, s) / arch.sm_count);
  return std::clamp(std::min(in_flight / std::max(needed, 1.0), covered), 1e-4, 1.0);
}

double host_threads(const Fusion& fusion, const Schedule& s, const ArchInfo& arch) {
  double items = static_cast<double>(iteration_count(fusion));
  if (s.kind == ScheduleKind::Reduction || s.kind == ScheduleKind::Normalization)
    items = s.slabs > 0 ? s.slabs : static_cast<double>(fusion.kept_numel()) * s.split;
  else if (s.kind == ScheduleKind::Transpose)
    items /= s.tile * s.tile;
  return std::clamp(items / static_cast<double>(s.split > 1 || s.slabs > 0 ? 1 : s.grain), 1.0, static_cast<double>(arch.sm_count));
}

}  // namespace

double estimate_ns(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch) {
  const double bytes = traffic(fusion, schedule, arch);
  const double slots = static_cast<double>(iteration_count(fusion)) * slots_per_element(fusion);
  if (arch.target == Target::Host) {
    const double threads = host_threads(fusion, schedule, arch);
    return std::max(bytes / kHostBytesPerNs, slots / kHostSlotsPerNs) / threads + kHostLaunchNs;
  }
  const double covered = std::min(1.0, grid(fusion, schedule) / arch.sm_count);
  const double memory = bytes / (kBytesPerNsPerSm * arch.sm_count * utilisation(fusion, schedule, arch));
  const double issue = slots / (kSlotsPerNsPerSm * arch.sm_count * std::max(covered, 1e-3));
  return std::max(memory, issue) + kLaunchNs * (schedule.split > 1 || schedule.slabs > 0 ? 1.5 : 1.0);
}

}  // namespace fxfuser::codegen
