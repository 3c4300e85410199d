// The order of the schedulers, and the first that accepts.

#include <fmt/format.h>

#include <iterator>

#include "codegen/schedule.h"
#include "codegen/schedule_parts.h"

namespace fxfuser::codegen {
namespace {

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::Warp:
      return "warp";
    case Tier::Block:
      return "block";
    case Tier::Cluster:
      return "cluster";
    case Tier::MultiPass:
      return "multipass";
  }
  return "?";
}

std::string flags(const std::vector<bool>& set) {
  std::string text;
  for (const bool on : set) text += on ? '1' : '0';
  return text.empty() ? "-" : text;
}

}  // namespace

std::string_view name(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::Pointwise:
      return "pointwise";
    case ScheduleKind::Reduction:
      return "reduction";
    case ScheduleKind::Normalization:
      return "normalization";
    case ScheduleKind::Transpose:
      return "transpose";
    case ScheduleKind::Interleave:
      return "interleave";
  }
  return "?";
}

const std::vector<Scheduler>& schedulers() {
  static const std::vector<Scheduler> all = {interleave_scheduler(), transpose_scheduler(), normalization_scheduler(), reduction_scheduler(),
                                             pointwise_scheduler()};
  return all;
}

Selected select_schedule(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options) {
  Selected selected;
  for (const Scheduler& scheduler : schedulers()) {
    if (std::optional<partitioner::Reason> reason = scheduler.refuses(fusion, arch)) {
      selected.refusals.push_back({reason->code, scheduler.name + ": " + reason->detail});
      continue;
    }
    selected.schedule = scheduler.plan(fusion, arch, options);
    selected.refusals.clear();
    return selected;
  }
  return selected;
}

std::string to_string(const Schedule& s) {
  std::string text = fmt::format("{}: index {} bits, vector {} (inputs {}, outputs {}), unroll {}, threads {}", name(s.kind),
                                 s.index_bits, s.vector, flags(s.vector_input), flags(s.vector_output), s.unroll, s.threads);
  auto out = std::back_inserter(text);
  if (s.kind == ScheduleKind::Reduction || s.kind == ScheduleKind::Normalization)
    fmt::format_to(out, ", {} {}, {} threads a row x {} rows, {} vectors a thread{}, split {}, cluster {}{}{}{}{}{}",
                   s.inner ? "inner" : "columns", name(s.tier), s.threads_per_row, s.rows_per_block, s.vectors_per_thread, s.exact ? " exactly" : "",
                   s.split, s.cluster, s.compensated ? ", compensated sums" : "", s.online ? ", online" : "", s.rows_across > 1 ? fmt::format(", {} rows side by side", s.rows_across) : "", s.slabs > 0 ? fmt::format(", columns in {} slabs", s.slabs) : "",
                   s.teams > 0 ? fmt::format(", {} teams, {}", s.teams, s.refills() ? "refilled" : fmt::format("{} stages", s.stages)) : "");
  if (s.kind == ScheduleKind::Transpose) {
    fmt::format_to(out, ", tile {} along axis {}, inputs", s.tile, s.tile_axis);
    for (const std::uint32_t input : s.transposed_inputs) fmt::format_to(out, " {}", input);
    if (s.tile_pack > 1) fmt::format_to(out, " by {}", s.tile_pack);
  }
  if (s.kind == ScheduleKind::Interleave) fmt::format_to(out, ", all of axis {} beside axis {}", s.short_axis, s.long_axis);
  if (s.shifted) fmt::format_to(out, ", shifted rows{}, inputs {} across", s.steady ? " (steady)" : "", flags(s.across_input));
  if (s.min_blocks > 0) fmt::format_to(out, ", {} blocks an SM", s.min_blocks);
  fmt::format_to(out, ", grain {}", s.grain);
  return text;
}

}  // namespace fxfuser::codegen
