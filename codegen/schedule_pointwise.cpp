// One pass over the space, one-shot blocks, no loop: with writes in the mix one 16-byte vector a thread is best, reads alone
// want two (measured; more in flight costs 1-4 %).

#include <algorithm>

#include "codegen/schedule_parts.h"
#include "codegen/shifted_rows.h"

namespace fxfuser::codegen {
namespace {

constexpr int kLargeBlock = 256;
constexpr int kSmallBlock = 128;
constexpr std::int64_t kVectorBytes = 16;

std::optional<partitioner::Reason> refuses(const Fusion& fusion, const ArchInfo&) {
  if (has_reduce(fusion)) return no_schedule("has a reduction");
  return refuse_any(fusion);
}

/// Vectors a thread has in flight. Narrow accesses (odd sizes) need several to move as many bytes as one wide one.
int choose_unroll(const Fusion& fusion, const ArchInfo& arch, std::int64_t count, const Schedule& schedule) {
  std::int64_t read = 0, written = 0;
  for (const Expr& expr : fusion.body)
    if (expr.kind == ExprKind::Load) read += ir::itemsize(fusion.inputs[expr.input].meta.dtype);
  for (const FusionOutput& output : fusion.outputs) written += ir::itemsize(output.meta.dtype);
  std::int64_t unroll = written * 8 < read ? 2 : 1;
  const std::int64_t bytes = schedule.vector * widest_itemsize(fusion);
  unroll = std::max(unroll, std::min<std::int64_t>(kVectorBytes / std::max<std::int64_t>(bytes, 1), 4));
  // Only while every SM keeps its threads.
  const std::int64_t resident = static_cast<std::int64_t>(arch.sm_count) * arch.max_threads_per_sm;
  while (unroll > 1 && count / (schedule.vector * unroll) < resident) unroll /= 2;
  return static_cast<int>(unroll);
}

Schedule plan(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options) {
  Schedule schedule;
  schedule.kind = ScheduleKind::Pointwise;
  schedule.index_bits = choose_index_bits(fusion);
  const std::int64_t count = iteration_count(fusion);
  const int innermost = static_cast<int>(fusion.axes.size()) - 1;
  if (arch.target == Target::Host) {
    choose_vector(fusion, arch, options, innermost, schedule);
    schedule.threads = 1;
    schedule.grain = host_grain(fusion, 1);
    return schedule;
  }
  // Small problems: a narrower vector until there is a block for each SM.
  const std::int64_t spread = floor_pow2(count / (static_cast<std::int64_t>(arch.sm_count) * kSmallBlock));
  choose_vector(fusion, arch, options, innermost, static_cast<int>(std::min<std::int64_t>(spread, arch.vector_bytes)),
                schedule);
  shift_rows(fusion, arch, options, spread, schedule);
  schedule.unroll = choose_unroll(fusion, arch, count, schedule);
  const std::int64_t work = count / (static_cast<std::int64_t>(schedule.vector) * schedule.unroll);
  const bool large = work >= static_cast<std::int64_t>(arch.sm_count) * kLargeBlock * 2;
  const std::int64_t most = floor_pow2(std::min(1024, arch.max_threads_per_sm / 2));
  schedule.threads = static_cast<int>(std::min<std::int64_t>(large ? kLargeBlock : kSmallBlock, most));
  return schedule;
}

}  // namespace

Scheduler pointwise_scheduler() {
  return {"pointwise", refuses, plan};
}

}  // namespace fxfuser::codegen
