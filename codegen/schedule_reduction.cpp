// Rows (or columns) folded to one value each, every reduction in one pass, outputs at row level only. A row may be cut into
// slabs (`split`) whose partials a second stage folds in fixed order: never an atomic.

#include <algorithm>
#include <numeric>

#include "codegen/schedule_parts.h"
#include "codegen/shifted_rows.h"

namespace fxfuser::codegen {
namespace {

constexpr int kLanes = 32;
constexpr std::int64_t kMaxSplit = 1024;      // partials that one block folds quickly
constexpr std::int64_t kMaxColumnSplit = 128;  // the same for columns
constexpr std::int64_t kColumnThreads = 512;   // on an SM: a run of packs and the sums of their columns take some 80 registers
constexpr int kColumnUnroll = 8;               // packs of a column in flight
constexpr std::int64_t kNarrowPack = 4;        // bytes of a pack that leave the memory idle at that
constexpr std::int64_t kShortColumns = 64;    // elements of a row beyond which narrow packs still fill the lines of memory
constexpr std::int64_t kFewLanes = 8;         // threads across: fewer would leave long folds over the depth of the block
constexpr std::int64_t kBlocksPerSm = 4;      // of 256 threads: one resident wave that leaves 64 registers a thread
constexpr std::int64_t kBusyThreads = 512;    // on an SM, beside which more threads a row gain nothing
constexpr std::int64_t kShortChain = 8;       // additions whose rounding errors are not worth carrying along
constexpr std::int64_t kSingleBlock = 16384;  // elements that one block folds sooner than two stages

std::optional<partitioner::Reason> refuses(const Fusion& fusion, const ArchInfo& arch) {
  if (!has_reduce(fusion)) return no_schedule("no reduction");
  if (auto reason = refuse_any(fusion)) return reason;
  if (folds_columns(fusion)) return no_schedule("rows and columns are reduced");
  if (least_rounds(fusion, arch) > 1) return no_schedule("a reduction needs the result of another");
  for (const FusionOutput& output : fusion.outputs)
    if (is_full_level(fusion, output)) return no_schedule("an output has the size of the reduced operand");
  return std::nullopt;
}

/// Threads that share a row of `n` elements.
std::int64_t ladder(std::int64_t n) {
  if (n <= 64) return 8;
  if (n <= 128) return 16;
  if (n <= 3072) return 32;
  if (n <= 6144) return 64;
  return n <= 16384 ? 128 : 256;
}

void plan_rows(const Fusion& fusion, const ArchInfo& arch, Schedule& s) {
  const std::int64_t rows = fusion.kept_numel(), n = fusion.reduced_numel();
  const std::int64_t most = floor_pow2(std::min(1024, arch.max_threads_per_sm / 2));
  const std::int64_t vectors = std::max<std::int64_t>(ceil_div(n, s.vector), 1);
  std::int64_t block = std::min<std::int64_t>(n <= kSingleBlock ? 128 : 256, most);
  // Exponentials give a thread so much to do between its loads that half as many are best, except in the longest rows.
  const bool fewer = s.online && (s.shifted || n <= kSingleBlock);
  std::int64_t lanes = std::min(ladder(n) / (fewer ? 2 : 1), block);
  // Few rows: more threads a row while each still has two vectors to load.
  const auto blocks = [&] { return ceil_div(rows, block / lanes); };
  while (rows * lanes < kBusyThreads * arch.sm_count && lanes < std::min<std::int64_t>(256, most) && vectors >= 4 * lanes) {
    lanes *= 2;
    block = std::max(block, lanes);
  }
  while (lanes > 1 && lanes >= 2 * vectors) lanes /= 2;
  if (rows == 1) block = std::max<std::int64_t>(lanes, std::min<std::int64_t>(kLanes, most));
  lanes = rows == 1 ? block : lanes;
  s.threads = static_cast<int>(block);
  s.threads_per_row = static_cast<int>(lanes);
  s.rows_per_block = static_cast<int>(block / lanes);
  std::int64_t unroll = 4;
  while (unroll > 1 && vectors < lanes * unroll) unroll /= 2;
  s.unroll = static_cast<int>(unroll);

  if (n <= kSingleBlock || blocks() >= arch.sm_count) return;
  const std::int64_t wave = kBlocksPerSm * arch.sm_count;
  const std::int64_t by_grid = wave / std::max<std::int64_t>(blocks(), 1);
  const std::int64_t by_work = vectors / (lanes * unroll);
  s.split = static_cast<int>(std::clamp<std::int64_t>(std::min(by_grid, by_work), 1, kMaxSplit));
}

/// Bytes of the widest input that a reduction reads along the reduced axes.
std::int64_t streamed_itemsize(const Fusion& fusion) {
  std::int64_t widest = 1;
  for (const Expr& expr : fusion.body)
    if (expr.kind == ExprKind::Load && (expr.depends & fusion.reduced_mask()) != 0) widest = std::max(widest, ir::itemsize(fusion.inputs[expr.input].meta.dtype));
  return widest;
}

/// Are all streamed loads packs of `vector` that run on from row to row: rows of `across` contiguous elements, one after the other?
bool runs_on(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, std::int64_t vector) {
  const int inner = static_cast<int>(fusion.axes.size()) - 1;
  const auto row = static_cast<std::size_t>(inner) - 1;
  const auto allows = [&](const Expr& load) {
    Affine form = load.form;
    if (coefficient(form, inner - 1) != fusion.axes.back().size) return false;
    form.coeff[row] = 0;
    return load.bounds.empty() && load.indirect.empty() && aligned_form(fusion, form, inner, vector) && pointer_allows(fusion, arch, options, load.input, vector);
  };
  bool any = false;
  for (const Expr& expr : fusion.body) {
    if (expr.kind != ExprKind::Load || (expr.depends & axis_bit(row)) == 0) continue;
    if (!allows(expr)) return false;
    any = true;
  }
  return any;
}

/// Rows so short that no wide pack fits them lie side by side, as many as end where a pack ends; false where that isn't so.
bool plan_short_columns(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, Schedule& s) {
  const std::size_t axes = fusion.axes.size();
  if (axes < 2 || fusion.reduced_mask() != axis_bit(axes - 2)) return false;
  const std::int64_t across = fusion.axes.back().size, n = fusion.axes[axes - 2].size;
  if (across < 2 || across > kShortColumns) return false;
  std::int64_t vector = floor_pow2(arch.vector_bytes / streamed_itemsize(fusion));
  while (vector > s.vector && !runs_on(fusion, arch, options, vector)) vector /= 2;
  if (vector <= s.vector) return false;
  std::int64_t together = vector / std::gcd(vector, across);
  while (together * across < kFewLanes * vector) together *= 2;
  const std::int64_t lanes = together * across / vector, block = std::min<std::int64_t>(256, floor_pow2(arch.max_threads_per_sm / 2));
  const std::int64_t deep = std::min(block / lanes, deepest_columns(fusion, arch, lanes * vector, s.compensated));
  const std::int64_t groups = n / together;
  if (deep < 1 || groups < deep * kColumnUnroll) return false;
  s.vector = static_cast<int>(vector);
  s.rows_across = static_cast<int>(together);
  s.threads_per_row = static_cast<int>(lanes);
  s.rows_per_block = static_cast<int>(deep);
  s.threads = static_cast<int>(ceil_div(lanes * deep, kLanes) * kLanes);
  s.unroll = kColumnUnroll;
  s.min_blocks = static_cast<int>(kColumnThreads / 256);
  const std::int64_t wave = s.min_blocks * arch.sm_count;
  const std::int64_t by_grid = wave / std::max<std::int64_t>(fusion.kept_numel() / across, 1), by_work = groups / (deep * s.unroll * 2);
  s.split = static_cast<int>(std::clamp<std::int64_t>(std::min(by_grid, by_work), 1, kMaxSplit));
  for (const Expr& expr : fusion.body)
    if (expr.kind == ExprKind::Load && (expr.depends & axis_bit(axes - 2)) != 0) s.vector_input[expr.input] = true;
  return true;
}

void plan_columns(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, Schedule& s) {
  const std::int64_t across = fusion.axes.empty() ? 1 : fusion.axes.back().size;
  const std::int64_t n = std::max<std::int64_t>(fusion.reduced_numel(), 1);
  const std::int64_t most = floor_pow2(std::min(1024, arch.max_threads_per_sm / 2));
  const auto lanes_of = [&] { return std::min<std::int64_t>({kLanes, ceil_pow2(ceil_div(across, s.vector)), most}); };
  std::int64_t lanes = lanes_of();
  const std::int64_t other = across > 0 ? fusion.kept_numel() / across : 0;
  const auto tiles_of = [&](std::int64_t wide) { return std::max<std::int64_t>(ceil_div(across, wide * s.vector) * other, 1); };
  // Columns that give no depth to a block take its threads across, while there are blocks for every SM.
  const std::int64_t wide = std::min<std::int64_t>(256, most);
  while (lanes * ceil_pow2(n) < wide && lanes * s.vector < across && tiles_of(2 * lanes) >= kBlocksPerSm * arch.sm_count) lanes *= 2;
  // Too few of them to fill the SMs, even cut into slabs: narrower packs, then fewer lanes, as long as they fill a sector of memory.
  const auto slabs_of = [&](std::int64_t narrow) { return std::max<std::int64_t>(n / (wide / narrow * kColumnUnroll * 2), 1); };
  while (tiles_of(lanes) * slabs_of(lanes) < arch.sm_count && (s.vector > 1 || lanes > kFewLanes)) {
    if (s.vector == 1) {
      lanes /= 2;
      continue;
    }
    choose_vector(fusion, arch, options, static_cast<int>(fusion.axes.size()) - 1, s.vector / 2, s);
    lanes = lanes_of();
  }
  const std::int64_t tiles = tiles_of(lanes);
  // 8 deep; deeper where few tiles, or narrow ones, would leave the SMs short of loads even when they are cut into slabs.
  std::int64_t deep = std::min<std::int64_t>(256 / lanes, most / lanes);
  if (tiles * kMaxColumnSplit < kColumnThreads / 256 * arch.sm_count) deep = std::min<std::int64_t>(512 / lanes, most / lanes);
  deep = std::min(deep, deepest_columns(fusion, arch, lanes * s.vector, s.compensated));
  while (deep > 1 && deep > n) deep /= 2;
  deep = std::max<std::int64_t>(deep, ceil_div(std::min<std::int64_t>(kLanes, most), lanes));  // whole warps
  // Narrow packs: more of them on their way, in more threads.
  const std::int64_t pack = s.vector * streamed_itemsize(fusion);
  std::int64_t unroll = pack < kNarrowPack ? 2 * kColumnUnroll : kColumnUnroll;
  while (unroll > 1 && deep * unroll > n) unroll /= 2;
  s.threads = static_cast<int>(lanes * deep);
  s.threads_per_row = static_cast<int>(lanes);
  s.rows_per_block = static_cast<int>(deep);
  s.unroll = static_cast<int>(unroll);

  const std::int64_t wave = (pack <= kNarrowPack ? 2 : 1) * kColumnThreads / std::max<std::int64_t>(s.threads, 256) * arch.sm_count;
  const std::int64_t by_grid = std::min<std::int64_t>(floor_pow2(wave / tiles), kMaxColumnSplit);
  const std::int64_t by_work = n / (deep * unroll * 2);
  s.split = static_cast<int>(std::max<std::int64_t>(std::min(by_grid, by_work), 1));
}

/// The slabs depend on the sizes only, so that the result doesn't depend on the number of threads.
void plan_host(const Fusion& fusion, Schedule& s) {
  constexpr std::int64_t kSlab = 65536, kTasks = 64, kColumns = 64;
  s.threads = s.threads_per_row = s.rows_per_block = 1;
  const std::int64_t n = std::max<std::int64_t>(fusion.reduced_numel(), 1);
  std::int64_t items = std::max<std::int64_t>(fusion.kept_numel(), 1);
  std::int64_t per_item = n;
  if (!s.inner && !fusion.axes.empty() && fusion.axes.back().size > 0) {
    const std::int64_t across = fusion.axes.back().size;
    items = items / across * ceil_div(across, kColumns);
    per_item = n * std::min(across, kColumns);
  }
  if (items < kTasks && per_item >= 2 * kSlab)
    s.split = static_cast<int>(std::clamp<std::int64_t>(std::min(per_item / kSlab, kTasks / items), 1, n));
  s.grain = host_grain(fusion, n);
  // One pass that only folds: twice the sums hide the latency of an addition, where rows are long enough to fill them.
  constexpr std::int64_t kLongRow = 256;
  if (s.inner && fusion.axes.back().size >= kLongRow) s.unroll = 2;
}

/// Packs that a thread adds one after the other; those of a run of columns meet by halves.
std::int64_t chain_length(const Fusion& fusion, const Schedule& s) {
  const std::int64_t threads = static_cast<std::int64_t>(s.split) * (s.inner ? s.threads_per_row * s.vector : s.rows_per_block * s.rows_across * s.unroll);
  return ceil_div(fusion.reduced_numel(), threads);
}

Schedule plan(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options) {
  Schedule s;
  s.kind = ScheduleKind::Reduction;
  s.index_bits = choose_index_bits(fusion);
  s.inner = !fusion.axes.empty() && fusion.axes.back().reduced;
  s.tier = Tier::MultiPass;
  s.online = reduce_rounds(fusion) > 1;
  s.compensated = arch.target == Target::Cuda && fusion.reduced_numel() > 1;  // one value has no error to carry
  choose_vector(fusion, arch, options, static_cast<int>(fusion.axes.size()) - 1, s);
  if (s.inner) shift_rows(fusion, arch, options, arch.vector_bytes, s);
  if (arch.target == Target::Host)
    plan_host(fusion, s);
  else if (s.inner)
    plan_rows(fusion, arch, s);
  else if (!plan_short_columns(fusion, arch, options, s))
    plan_columns(fusion, arch, options, s);
  if (arch.target == Target::Cuda && chain_length(fusion, s) <= kShortChain) s.compensated = false;
  return s;
}

}  // namespace

Scheduler reduction_scheduler() {
  return {"reduction", refuses, plan};
}

}  // namespace fxfuser::codegen
