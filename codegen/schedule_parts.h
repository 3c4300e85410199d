#pragma once
// What the schedulers share: facts of a fusion that decide a kind, the refusals that hold for all of them, small arithmetic.

#include <bit>
#include <cstdint>
#include <optional>

#include "codegen/schedule.h"

namespace fxfuser::codegen {

/// The scheduler entries, one a file.
Scheduler interleave_scheduler();
Scheduler transpose_scheduler();
Scheduler normalization_scheduler();
Scheduler reduction_scheduler();
Scheduler pointwise_scheduler();

std::int64_t ceil_div(std::int64_t a, std::int64_t b);
/// Largest power of two <= value, smallest one >= value; 1 for value < 1.
std::int64_t floor_pow2(std::int64_t value);
std::int64_t ceil_pow2(std::int64_t value);

inline std::uint64_t axis_bit(std::size_t axis) {
  return std::uint64_t{1} << axis;
}
/// Axes with a coefficient other than 0.
std::uint64_t axes_of(const Affine& form);
std::int64_t coefficient(const Affine& form, int axis);
/// Product of all axis sizes.
std::int64_t iteration_count(const Fusion& fusion);
/// Is there a Reduce at all (its axes may all have had size 1).
bool has_reduce(const Fusion& fusion);
/// Largest number of rounds: 1 = every reduction can run in one pass, 2 = one needs the row of another.
int reduce_rounds(const Fusion& fusion);
/// The same where sums of exponentials are folded with their maximum: on CUDA, in rows too long to be best held in registers.
int least_rounds(const Fusion& fusion, const ArchInfo& arch);
/// Does a Reduce fold the kept axes, beside others over the reduced ones?
bool folds_columns(const Fusion& fusion);
/// Is an output stored inside the loops over the reduced axes?
bool is_full_level(const Fusion& fusion, const FusionOutput& output);
/// Bytes of the widest tensor that is streamed through the whole space; 1 when there is none.
std::int64_t widest_itemsize(const Fusion& fusion);
/// Host: work items of `elements` elements each that make a task worth a thread.
std::int64_t host_grain(const Fusion& fusion, std::int64_t elements_per_item);

/// CUDA, columns: threads deep (a power of two) whose partial values of `width` columns each meet in a block's shared memory.
std::int64_t deepest_columns(const Fusion& fusion, const ArchInfo& arch, std::int64_t width, bool compensated);

/// May `vector` elements of this load along `axis` be read at once: by its addresses and by what is known of the pointer?
bool loads_vectors(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, const Expr& load, int axis, std::int64_t vector);

/// Is every address that the form gives at a multiple of `vector` along `axis`, where it is contiguous, itself a multiple of it?
bool aligned_form(const Fusion& fusion, const Affine& form, int axis, std::int64_t vector);

/// How often the body loads each input.
std::vector<int> loads_by_input(const Fusion& fusion);

/// loads_vectors of the pointer alone.
bool pointer_allows(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, std::size_t input, std::int64_t vector);

/// What no scheduler takes: reductions over some of the reduced axes or over kept ones, outputs that cover only a part of
/// the space, more tensors than a parameter block holds.
std::optional<partitioner::Reason> refuse_any(const Fusion& fusion);
std::optional<partitioner::Reason> no_schedule(std::string detail);

}  // namespace fxfuser::codegen
