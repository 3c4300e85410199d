// Reductions whose rows go on into values of full size, or into further reductions. While a row fits the registers of a
// warp or a block, or the shared memory of a cluster of blocks, it is read once; longer rows are read again in each round.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "codegen/expr_writer.h"
#include "codegen/fusion_passes.h"
#include "codegen/schedule_parts.h"
#include "codegen/shifted_rows.h"
#include "partitioner/ir/error.h"

namespace fxfuser::codegen {
namespace {

constexpr std::int64_t kMaxVectors = 16;    // a thread's part of a row is unrolled: bounded text
constexpr std::int64_t kThreadBytes = 256;  // of a row that a thread can hold
constexpr std::int64_t kWarpLanes = 32;
constexpr std::int64_t kSlabThreads = 512;  // on an SM, of blocks that fold columns: registers are what bounds them; half as many more,
constexpr std::int64_t kFewElements = 8;    // where a thread holds no more of a row than this, and twice as many,
constexpr std::int64_t kFewBytes = 128;     // where with its columns that is no more than this
constexpr std::int64_t kSlabRounds = 4;     // rows a block takes at least before it leaves its columns to the second stage
constexpr std::int64_t kStages = 4, kStagesAlone = 6;  // rounds in flight; the second where an SM holds one block
constexpr std::int64_t kQuietThreads = 256;  // on an SM: so few are not enough to hide the latency of a warp's row
constexpr std::int64_t kSmallShare = 32;     // bytes of a row for a warp, as a share of an SM's registers: 2 KiB on large machines
constexpr std::int64_t kBlockRow = 65536;    // bytes of a row that a block alone holds well: more leave an SM no second block
constexpr std::int64_t kFewTurns = 32;       // of a team
constexpr std::int64_t kPortable = 8;        // blocks of a cluster that every device holds in most places
constexpr std::int64_t kRefilled = 4;        // blocks on an SM that refill their shared memory
constexpr std::int64_t kReservedShared = 1024, kScratch = 512;  // of a block: the driver's, and room for borders between arrays
constexpr std::int64_t kHostSlab = 16384, kHostSlabs = 32;
constexpr std::int64_t kHostLongRow = 512;

/// What a row occupies: inputs that differ from row to row and along its innermost axis (weights don't count, they stay in the
/// cache; nor what many elements of a row share, such as a channel's factor in a group).
struct RowBytes {
  std::int64_t memory = 0;     // an element, as stored
  std::int64_t columns = 0;    // an element's sums over the rows, in the thread that folds them; of wide inputs with their errors
  std::int64_t registers = 0;  // an element in a thread that holds it: both
  bool weights = false;        // are there inputs that all rows share?
};

/// Sums over many rows are one chain a column. Where nothing narrower than a float limits the precision they carry their errors along.
bool compensates_columns(const Fusion& fusion) {
  return std::all_of(fusion.inputs.begin(), fusion.inputs.end(), [](const FusionInput& input) { return input.scalar || ir::itemsize(input.meta.dtype) >= 4; });
}

RowBytes row_bytes(const Fusion& fusion) {
  RowBytes bytes;
  const std::uint64_t reduced = fusion.reduced_mask();
  for (const Expr& expr : fusion.body) {
    if (expr.kind != ExprKind::Load || (expr.depends & reduced) == 0) continue;
    if ((expr.depends & ~reduced) == 0 && fusion.kept_numel() > 1) {
      bytes.weights = true;
      continue;
    }
    if (fusion.axes.back().reduced && coefficient(expr.form, static_cast<int>(fusion.axes.size()) - 1) == 0 && expr.indirect.empty()) continue;
    bytes.memory += ir::itemsize(fusion.inputs[expr.input].meta.dtype);
  }
  for (const Accumulator& state : plan_passes(fusion).columns) bytes.columns += std::max<std::int64_t>(ir::itemsize(accumulator_dtype(fusion.body[state.expr])), 4);
  if (compensates_columns(fusion)) bytes.columns *= 2;
  bytes.memory = std::max<std::int64_t>(bytes.memory, 1);
  bytes.registers = bytes.memory + bytes.columns;
  return bytes;
}

std::int64_t largest_block(const ArchInfo& arch) {
  return floor_pow2(std::min(1024, arch.max_threads_per_sm / 2));
}

/// Bytes of a row that a thread can hold when a block has this many: half its registers.
std::int64_t thread_bytes(const ArchInfo& arch, std::int64_t threads) {
  return std::min<std::int64_t>(kThreadBytes, static_cast<std::int64_t>(arch.registers_per_sm) / threads * 4 / 2);
}

bool row_fits(const ArchInfo& arch, const Schedule& s, const RowBytes& bytes, std::int64_t n, std::int64_t threads) {
  const std::int64_t vectors = ceil_div(n, threads * s.vector);
  return vectors <= kMaxVectors && vectors * s.vector * bytes.registers <= thread_bytes(arch, threads);
}

/// Sizes of cluster that a device may have, smallest first.
std::vector<std::int64_t> cluster_sizes(const ArchInfo& arch) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = 2; arch.sm >= 90 && size <= arch.max_cluster; size *= 2) sizes.push_back(size);
  return sizes;
}

/// What a thread of a cluster holds: packs of its row stay in shared memory.
RowBytes in_cluster(RowBytes bytes) {
  bytes.registers = std::max<std::int64_t>(bytes.columns, 1);
  return bytes;
}

/// Columns are folded in the registers of the threads that hold the rows.
std::optional<partitioner::Reason> refuses_columns(const Fusion& fusion, const ArchInfo& arch) {
  if (fusion.axes.empty() || !fusion.axes.back().reduced) return no_schedule("rows and columns are reduced, and the rows are not contiguous");
  if (arch.target == Target::Host) return std::nullopt;
  const Schedule s;
  const RowBytes bytes = row_bytes(fusion);
  const std::int64_t n = fusion.reduced_numel();
  for (std::int64_t threads = 1; threads <= largest_block(arch); threads *= 2)
    if (row_fits(arch, s, bytes, n, threads)) return std::nullopt;
  for (const std::int64_t cluster : cluster_sizes(arch))
    if (row_fits(arch, s, in_cluster(bytes), ceil_div(n, cluster), largest_block(arch))) return std::nullopt;
  return no_schedule(fmt::format("rows of {} elements leave no registers for the columns", n));
}

std::optional<partitioner::Reason> refuses(const Fusion& fusion, const ArchInfo& arch) {
  if (!has_reduce(fusion)) return no_schedule("no reduction");
  if (auto reason = refuse_any(fusion)) return reason;
  const bool full = std::any_of(fusion.outputs.begin(), fusion.outputs.end(),
                                [&](const FusionOutput& o) { return is_full_level(fusion, o); });
  if (!full && least_rounds(fusion, arch) <= 1 && !folds_columns(fusion)) return no_schedule("one round of reductions and no output of full size");
  if (folds_columns(fusion)) return refuses_columns(fusion, arch);
  return std::nullopt;
}

void set_row(Schedule& s, Tier tier, std::int64_t n, std::int64_t lanes, std::int64_t block) {
  s.tier = tier;
  s.threads = static_cast<int>(block);
  s.threads_per_row = static_cast<int>(lanes);
  s.rows_per_block = static_cast<int>(block / lanes);
  s.vectors_per_thread = static_cast<int>(std::max<std::int64_t>(ceil_div(spanned(s, n), lanes * s.vector), 1));
}

/// `vectors`: how many a thread should have at least, where there are rows enough.
bool plan_warp(const ArchInfo& arch, const RowBytes& bytes, std::int64_t rows, std::int64_t n, std::int64_t vectors, Schedule& s) {
  const std::int64_t small_row = arch.registers_per_sm / 16;  // 4 KiB on large machines
  if (n * bytes.memory > small_row) return false;
  constexpr std::int64_t kWaves = 4;
  std::int64_t lanes = std::min(kWarpLanes, ceil_pow2(ceil_div(n, s.vector)));
  const std::int64_t fewer = std::max<std::int64_t>(std::min(lanes, ceil_pow2(ceil_div(n, s.vector * vectors))), 1);
  if (rows * fewer >= kWaves * arch.sm_count * arch.max_threads_per_sm) lanes = fewer;
  if (!row_fits(arch, s, bytes, n, lanes)) return false;
  std::int64_t block = std::min<std::int64_t>(128, largest_block(arch));
  while (block > kWarpLanes && block / lanes > rows) block /= 2;  // no idle warps for a handful of rows
  set_row(s, Tier::Warp, n, lanes, std::max(block, lanes));
  return true;
}

bool plan_block(const ArchInfo& arch, const RowBytes& bytes, std::int64_t n, Schedule& s) {
  // Two vectors a thread is best while 512 threads allow it; then more vectors, then 1024 threads.
  const std::int64_t most = largest_block(arch);
  std::int64_t lanes = std::clamp<std::int64_t>(ceil_pow2(ceil_div(n, s.vector * 2)), std::min<std::int64_t>(64, most),
                                                std::min<std::int64_t>(512, most));
  while (!row_fits(arch, s, bytes, n, lanes)) {
    if (lanes * 2 > most) return false;
    lanes *= 2;
  }
  set_row(s, Tier::Block, n, lanes, lanes);
  return true;
}

/// Bytes of a block through which the warps of a team exchange their folds: two places for each warp of the team.
std::int64_t exchange_bytes(const Fusion& fusion, const Schedule& s) {
  if (s.threads_per_row * s.cluster <= kWarpLanes) return 0;
  std::int64_t bytes = 0;
  for (const Accumulator& state : plan_passes(fusion).accumulators) bytes += chain_bytes(fusion.body[state.expr], true);
  return bytes * 2 * s.cluster * s.threads / kWarpLanes;
}

/// Bytes of shared memory for rows in a block, of `resident` on an SM.
std::int64_t row_room(const Fusion& fusion, const ArchInfo& arch, const Schedule& s, std::int64_t resident) {
  return std::min(arch.shared_per_sm / resident - kReservedShared, arch.shared_per_block) - kScratch - exchange_bytes(fusion, s);
}

/// Turns of rows that may be in the shared memory of a block, of `resident` on an SM; 0 where there are fewer than `least`.
int ring_stages(const Fusion& fusion, const ArchInfo& arch, const RowBytes& bytes, const Schedule& s, std::int64_t resident, std::int64_t least) {
  const std::int64_t stage = bytes.memory * s.vector * s.vectors_per_thread * s.threads;
  const std::int64_t stages = std::min<std::int64_t>(row_room(fusion, arch, s, resident) / std::max<std::int64_t>(stage, 1), resident == 1 ? kStagesAlone : kStages);
  return arch.sm >= 80 && stages >= least ? static_cast<int>(stages) : 0;
}

/// A turn that is on its way, beside those that the passes work on (one each, where they are skewed).
std::int64_t least_stages(const Fusion& fusion, const Schedule& s) { return s.threads_per_row * s.cluster > kWarpLanes ? plan_passes(fusion).count + 1 : 2; }

/// A cluster of blocks a row: the smallest that leaves room for two turns on their way, else for one; those of more than 8 blocks, which
/// few places of a device can hold, later. Columns also do without such a room: the row is then read again in each pass.
bool plan_cluster(const Fusion& fusion, const ArchInfo& arch, const RowBytes& bytes, std::int64_t n, Schedule& s) {
  const auto plan_of = [&](std::int64_t cluster, std::int64_t spare, bool reads_again = false) {
    Schedule part = s;
    if (!plan_block(arch, in_cluster(bytes), ceil_div(n, cluster), part)) return false;
    part.tier = Tier::Cluster;
    part.cluster = static_cast<int>(cluster);
    part.stages = ring_stages(fusion, arch, bytes, part, 1, least_stages(fusion, part) + spare);
    part.min_blocks = 1;
    if (part.stages == 0 && !reads_again) return false;
    s = part;
    return true;
  };
  const std::vector<std::int64_t> sizes = cluster_sizes(arch);
  for (const std::int64_t spare : {1, 0}) {
    for (const std::int64_t cluster : sizes)
      if (cluster <= kPortable && plan_of(cluster, spare)) return true;
  }
  for (const bool reads_again : {false, true}) {
    if (reads_again && bytes.columns == 0) return false;
    for (const std::int64_t cluster : sizes)
      if (plan_of(cluster, 0, reads_again)) return true;
  }
  return false;
}

/// A cluster of blocks whose shared memory the row fills, several small blocks on an SM rather than one large: while one waits for its
/// peers the others work.
bool plan_refilled(const Fusion& fusion, const ArchInfo& arch, const RowBytes& bytes, std::int64_t n, Schedule& s) {
  if (s.shifted || bytes.columns > 0) return false;
  for (std::int64_t resident = kRefilled; resident >= 1; resident /= 2) {
    for (const std::int64_t cluster : cluster_sizes(arch)) {
      Schedule part = s;
      part.cluster = static_cast<int>(cluster);
      part.stages = 1;
      const std::int64_t share = packs_of_peer(part, n), threads = std::max(largest_block(arch) / resident, kWarpLanes);
      set_row(part, Tier::Cluster, share * s.vector, threads, threads);
      if (part.vectors_per_thread > kMaxVectors) continue;
      if (share * s.vector * bytes.memory > row_room(fusion, arch, part, resident)) continue;
      part.min_blocks = static_cast<int>(resident);
      s = part;
      return true;
    }
  }
  return false;
}

/// Blocks or clusters that are all resident.
std::int64_t resident_teams(const ArchInfo& arch, const Schedule& s, std::int64_t blocks_per_sm) { return std::max<std::int64_t>(arch.cluster_blocks(s.cluster) * blocks_per_sm / s.cluster, 1); }

void choose_row_vector(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, int max_vector, Schedule& s) {
  choose_vector(fusion, arch, options, static_cast<int>(fusion.axes.size()) - 1, max_vector, s);
  shift_rows(fusion, arch, options, max_vector, s);
}

/// Shifted rows: as many teams as keep each team's rows at one shift, so that its threads' places in a row stay the same. False where that
/// takes more teams than `most`, or leaves too few of them.
bool steady_teams(const Fusion& fusion, std::int64_t most, Schedule& s) {
  constexpr std::int64_t kIdle = 8;  // of this many teams one may be given up
  const std::int64_t period = shift_period(fusion, s);
  if (period == 0) return false;
  const std::int64_t step = period / std::gcd<std::int64_t>(period, s.rows_per_block);
  const std::int64_t teams = ceil_div(s.teams, step) * step <= most ? ceil_div(s.teams, step) * step : s.teams / step * step;
  if (teams == 0 || s.teams - teams > s.teams / kIdle) return false;
  s.teams = static_cast<int>(teams);
  s.steady = true;
  return true;
}

/// Rows and columns: teams that are all resident walk over the rows, so that few partial columns are left to fold.
void plan_slabs(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, Schedule& s) {
  const std::int64_t rows = fusion.kept_numel(), n = std::max<std::int64_t>(fusion.reduced_numel(), 1);
  const RowBytes bytes = row_bytes(fusion);
  const Schedule start = s;
  // A vector that leaves a thread too much of the row gives way to a narrower one.
  for (int limit = s.vector; !plan_warp(arch, bytes, rows, n, 1, s) && !plan_block(arch, bytes, n, s) && !plan_cluster(fusion, arch, bytes, n, s); limit /= 2) {
    FXF_ASSERT(limit > 1, "rows of {} elements fit no block", n);
    choose_row_vector(fusion, arch, options, limit / 2, s);
  }
  s.compensated = compensates_columns(fusion);
  const std::int64_t elements = s.vectors_per_thread * s.vector;
  const std::int64_t threads = elements > kFewElements ? kSlabThreads : elements * bytes.registers > kFewBytes ? kSlabThreads * 3 / 2 : kSlabThreads * 2;
  const std::int64_t resident = s.cluster > 1 ? 1 : std::max<std::int64_t>(std::min<std::int64_t>(threads, arch.max_threads_per_sm) / s.threads, 1);
  const std::int64_t most = resident_teams(arch, s, resident);
  s.teams = static_cast<int>(std::clamp<std::int64_t>(ceil_div(ceil_div(rows, s.rows_per_block), kSlabRounds), 1, most));
  if (s.shifted && !steady_teams(fusion, most, s)) {
    const int narrower = s.vector / 2;
    s = start;
    choose_row_vector(fusion, arch, options, narrower, s);
    return plan_slabs(fusion, arch, options, s);
  }
  s.slabs = s.teams;
  s.min_blocks = static_cast<int>(resident);
  if (s.cluster == 1) s.stages = ring_stages(fusion, arch, bytes, s, resident, least_stages(fusion, s));
}

/// As many blocks as an SM has registers for, by what a thread holds of its row. Large bodies are left to the compiler.
void limit_registers(const Fusion& fusion, const ArchInfo& arch, const RowBytes& bytes, Schedule& s) {
  constexpr std::size_t kLargeBody = 48;
  constexpr std::int64_t kWorking = 24, kGrain = 8;  // registers of a thread beside its packs; the step in which the machine gives them
  if (fusion.body.size() > kLargeBody) return;
  const std::int64_t registers = ceil_div(ceil_div(bytes.registers * s.vector * s.vectors_per_thread, 4) + kWorking, kGrain) * kGrain;
  s.min_blocks = static_cast<int>(std::min<std::int64_t>(arch.registers_per_sm / (registers * s.threads), arch.max_threads_per_sm / s.threads));
}

/// Teams of a cluster of blocks that walk over the rows. Where a row is folded more than once, where the turns are too few to make up for the
/// skew of the passes, or too few places hold a cluster that has room to fetch ahead, its memory is refilled; not where weights would be read again for every row, which skewed passes hold in registers.
bool plan_teams(const Fusion& fusion, const ArchInfo& arch, const RowBytes& bytes, std::int64_t rows, std::int64_t n, Schedule& s) {
  Schedule skewed = s, refilled = s;
  const bool any_skewed = plan_cluster(fusion, arch, bytes, n, skewed);
  const bool refills = !any_skewed || reduce_rounds(fusion) > 1 || skewed.cluster > kPortable || rows < kFewTurns * resident_teams(arch, skewed, 1);
  if (refills && !bytes.weights && plan_refilled(fusion, arch, bytes, n, refilled)) s = refilled;
  else if (any_skewed) s = skewed;
  else return false;
  const std::int64_t most = resident_teams(arch, s, s.min_blocks);
  s.teams = static_cast<int>(std::clamp<std::int64_t>(rows, 1, most));
  if (s.shifted) steady_teams(fusion, most, s);
  return true;
}

void plan_rows(const Fusion& fusion, const ArchInfo& arch, Schedule& s) {
  const std::int64_t rows = fusion.kept_numel(), n = std::max<std::int64_t>(fusion.reduced_numel(), 1);
  const RowBytes bytes = row_bytes(fusion);
  const bool quiet = rows * kWarpLanes < kQuietThreads * arch.sm_count && ceil_div(n, s.vector) >= 4 * kWarpLanes;
  // One block a row where a warp would hold much of it.
  const bool small = n * bytes.memory <= arch.registers_per_sm / kSmallShare;
  if (small && !quiet && plan_warp(arch, bytes, rows, n, 2, s)) return limit_registers(fusion, arch, bytes, s);
  // Shifted rows whose passes wait for each other are sooner read again from the cache than brought to shared memory.
  const bool again = s.shifted && reduce_rounds(fusion) > 1 && rows >= arch.sm_count && n * bytes.memory > kBlockRow;
  if (!again && n * bytes.memory > kBlockRow && plan_teams(fusion, arch, bytes, rows, n, s)) return;
  if (!again && plan_block(arch, bytes, n, s)) return limit_registers(fusion, arch, bytes, s);
  if (!again && plan_teams(fusion, arch, bytes, rows, n, s)) return;
  const std::int64_t lanes = std::min<std::int64_t>(n <= 65536 && !again ? 512 : 1024, largest_block(arch));
  set_row(s, Tier::MultiPass, n, lanes, lanes);
  s.online = least_rounds(fusion, arch) < reduce_rounds(fusion);
  s.vectors_per_thread = 1;
  s.unroll = ceil_div(n, s.vector) >= 4 * lanes ? 4 : 1;
}

/// Threads across the kept elements, several deep over the reduced axes, which are read again in each round.
void plan_columns(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, Schedule& s) {
  const std::int64_t across = fusion.axes.empty() ? 1 : std::max<std::int64_t>(fusion.axes.back().size, 1);
  const std::int64_t n = std::max<std::int64_t>(fusion.reduced_numel(), 1);
  const std::int64_t other = fusion.kept_numel() / across;
  const std::int64_t most = largest_block(arch);
  const int axis = static_cast<int>(fusion.axes.size()) - 1;
  std::int64_t lanes = 0;
  // A narrower vector where wide ones would leave SMs without a block; 128-byte lines want at least 8 lanes.
  for (int limit = s.vector; limit >= 1; limit /= 2) {
    choose_vector(fusion, arch, options, axis, limit, s);
    lanes = std::min<std::int64_t>({kWarpLanes, ceil_pow2(ceil_div(across, s.vector)), most});
    if (ceil_div(across, lanes * s.vector) * other >= arch.sm_count || s.vector == 1) break;
  }
  std::int64_t deep = std::max<std::int64_t>(std::min<std::int64_t>(256, most) / lanes, 1);
  const std::int64_t blocks = ceil_div(across, lanes * s.vector) * other;
  if (blocks < arch.sm_count && n >= 1024) deep = std::max(deep, std::min<std::int64_t>(512, most) / lanes);
  deep = std::min(deep, deepest_columns(fusion, arch, lanes * s.vector, s.compensated));
  while (deep > 1 && deep * 2 > n) deep /= 2;
  deep = std::max(deep, ceil_div(std::min(kWarpLanes, most), lanes));  // whole warps
  s.tier = Tier::MultiPass;
  s.threads = static_cast<int>(lanes * deep);
  s.threads_per_row = static_cast<int>(lanes);
  s.rows_per_block = static_cast<int>(deep);
  s.vectors_per_thread = 1;
  s.unroll = n >= deep * 4 ? 4 : 1;
}

Schedule plan(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options) {
  Schedule s;
  s.kind = ScheduleKind::Normalization;
  s.index_bits = choose_index_bits(fusion);
  s.inner = !fusion.axes.empty() && fusion.axes.back().reduced;
  choose_vector(fusion, arch, options, static_cast<int>(fusion.axes.size()) - 1, s);
  if (s.inner) shift_rows(fusion, arch, options, arch.vector_bytes, s);
  if (arch.target == Target::Host) {
    s.threads = s.threads_per_row = s.rows_per_block = 1;
    s.grain = host_grain(fusion, fusion.reduced_numel());
    // Twice the lanes hide the latency of an addition, and give special functions the widest vectors.
    if (s.inner && fusion.axes.back().size >= kHostLongRow) s.unroll = 2;
    // By the sizes only, so that the result doesn't depend on the number of threads.
    if (folds_columns(fusion)) s.slabs = static_cast<int>(std::clamp<std::int64_t>(iteration_count(fusion) / kHostSlab, 1, std::clamp<std::int64_t>(fusion.kept_numel(), 1, kHostSlabs)));
  } else if (folds_columns(fusion)) {
    plan_slabs(fusion, arch, options, s);
  } else if (s.inner) {
    plan_rows(fusion, arch, s);
  } else {
    plan_columns(fusion, arch, options, s);
  }
  s.exact = s.tier == Tier::Cluster && !s.shifted && fusion.reduced_numel() == static_cast<std::int64_t>(s.cluster) * s.threads_per_row * s.vectors_per_thread * s.vector;
  return s;
}

}  // namespace

Scheduler normalization_scheduler() {
  return {"normalization", refuses, plan};
}

}  // namespace fxfuser::codegen
