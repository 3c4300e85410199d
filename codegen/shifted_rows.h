#pragma once
// Packs for rows that start anywhere in a pack, since a row's stride is no multiple of one (rows of odd length). The packs of such a
// row are those of the memory, from the one that has the row's start: element `e` of pack `p` is element p * vector + e - shift of the
// row, and those outside the row are masked. Tensors whose rows have the same shift move in packs; what another tensor has beside such
// a pack lies across two of its own (a weight, which all rows read alike).

#include <cstdint>

#include "codegen/schedule.h"

namespace fxfuser::codegen {

/// Sets vector, vector_input, vector_output, across_input and `shifted`, where rows along the innermost axis have no packs otherwise and
/// most of what moves can move in such ones of at most `max_vector` elements. CUDA only.
void shift_rows(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, std::int64_t max_vector, Schedule& schedule);

/// Elements that the packs of a row of `n` may span, with those outside the row.
std::int64_t spanned(const Schedule& schedule, std::int64_t n);

/// Packs of a row of `n` that each block of a cluster takes.
std::int64_t packs_of_peer(const Schedule& schedule, std::int64_t n);

/// The address whose remainder by the vector, at the start of a row, is the row's shift: an output's, or else a load's. `role` is what
/// names its numbers.
struct ShiftForm {
  Affine form;
  std::string role;
};
ShiftForm shift_form(const Fusion& fusion, const Schedule& schedule);

/// Rows after which shifts repeat, when the row is the index of one axis; 0 otherwise.
std::int64_t shift_period(const Fusion& fusion, const Schedule& schedule);

/// One past the largest offset that a load without bounds reads.
std::int64_t load_end(const Fusion& fusion, const Expr& load);

}  // namespace fxfuser::codegen
