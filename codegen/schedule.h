#pragma once
// How a fusion is computed: plain data, chosen by stateless schedulers. No text and no axis rewriting here; an emitter reads
// a Fusion and a Schedule. Everything that may change the text is a field.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/arch.h"
#include "codegen/fusion.h"
#include "partitioner/reason.h"

namespace fxfuser::codegen {

enum class ScheduleKind : std::uint8_t { Pointwise, Reduction, Normalization, Transpose, Interleave };

/// Where a reduction row lives while it is worked on.
enum class Tier : std::uint8_t {
  Warp,        // a warp or a part of one a row, row in registers
  Block,       // a block a row, row in registers
  Cluster,     // a cluster of blocks a row
  MultiPass,   // the row is read again in each stage
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::Pointwise;
  // shared by all kinds
  int index_bits = 64;       // 32 when the largest reachable element offset fits
  int vector = 1;            // elements a thread loads at once along the innermost axis
  int unroll = 1;            // vectors a thread has in flight (pointwise: whole tiles; reduction: rows or vectors)
  int threads = 128;         // a block
  int min_blocks = 0;        // CUDA: blocks that an SM must have registers for; 0: as the compiler likes
  std::vector<bool> vector_input, vector_output;  // which tensors are accessed with `vector` (others element by element)
  bool shifted = false;      // CUDA: rows start anywhere in a pack (shifted_rows.h)
  std::vector<bool> across_input;  // shifted: of vector_input, those whose packs lie across two of the memory
  // reduction and normalization
  Tier tier = Tier::MultiPass;
  bool inner = true;         // the innermost axis is reduced; false: columns (threads across kept elements)
  // inner: threads that share a row, rows a block. Columns: threads across (one vector of kept elements each), threads deep
  // over the reduced axes. threads_per_row * rows_per_block == threads, at most that many where rows lie side by side.
  int threads_per_row = 32;
  int rows_per_block = 1;
  int rows_across = 1;       // CUDA, columns: rows that lie side by side across the threads, in packs that run on from one to the next
  int vectors_per_thread = 1;  // persistent tiers: vectors of a row each thread holds
  bool exact = false;        // clusters: the threads' vectors are the whole row, none is beyond its end
  int split = 1;             // blocks (slabs) that share one row or column; > 1: partials and a fixed-order finish
  int cluster = 1;           // blocks that share a row
  int teams = 0;             // CUDA, rows: blocks, or clusters of them, that walk over all rows; 0: a block for each few rows
  // teams: turns whose rows are in shared memory or on their way there; 0: none. 1: the row of one turn, each of whose packs gives way to
  // that of the next row when the last pass is done with it.
  int stages = 0;
  bool steady = false;       // teams of shifted rows: all rows of a team start at the same place of a pack
  int slabs = 0;             // row + column: groups of rows (of the teams) that fold their columns apart, to be folded by a second stage; 0: no columns
  bool online = false;       // CUDA, rows: a maximum and the sum of exponentials below it are folded in one pass (online_sums.h)
  bool compensated = false;  // sums carry their rounding errors along (two-sum): the length of a chain costs no accuracy
  // transpose
  int tile = 32;             // tile of tile x tile elements through shared memory
  std::vector<std::uint32_t> transposed_inputs;  // inputs read through the tile
  int tile_axis = -1;        // the axis those inputs are contiguous in
  int tile_pack = 1;         // CUDA: elements that are read at once along that axis; `vector` of them are stored at once
  // interleave
  int short_axis = -1;       // a thread takes the whole of it, and `vector` neighbours along the long axis
  int long_axis = -1;
  // host
  // work items one call of the kernel takes at least: elements (pointwise), kept points (reduction, normalization), tiles
  std::int64_t grain = 1;

  bool refills() const { return stages == 1; }

  bool operator==(const Schedule&) const = default;
};

struct ScheduleOptions {
  bool deterministic = true;
  // alignment in bytes of each fusion input's pointer as far as known (0: assume 16)
  std::vector<int> input_alignment;
};

/// A scheduler: two pure functions.
struct Scheduler {
  std::string name;
  /// nullopt when it can take the fusion, from the pattern alone.
  std::optional<partitioner::Reason> (*refuses)(const Fusion&, const ArchInfo&);
  Schedule (*plan)(const Fusion&, const ArchInfo&, const ScheduleOptions&);
};

/// In priority order: interleave, transpose, normalization, reduction, pointwise.
const std::vector<Scheduler>& schedulers();

struct Selected {
  std::optional<Schedule> schedule;
  std::vector<partitioner::Reason> refusals;  // one a scheduler that said no, when all did
};
/// The first scheduler that accepts. (select_schedule.cpp)
Selected select_schedule(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options);

/// "pointwise", "reduction", "normalization", "transpose", "interleave".
std::string_view name(ScheduleKind kind);
std::string to_string(const Schedule& schedule);

/// Widest vector (elements) along the innermost axis that all vectorised accesses allow; fills vector_input/output.
/// Shared by the four schedulers. (vectorize.cpp)
void choose_vector(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, int axis, Schedule& schedule);
/// The same, at most `max_vector` elements.
void choose_vector(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, int axis, int max_vector,
                   Schedule& schedule);
/// 32 when every reachable element offset of every tensor and the numel fit in 31 bits, else 64.
int choose_index_bits(const Fusion& fusion);
/// Predicted issue slots an element of the whole iteration space costs (rows' costs, loads, stores, conversions).
int slots_per_element(const Fusion& fusion);

}  // namespace fxfuser::codegen
