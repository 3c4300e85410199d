// Vector width and index width: what the addresses of a fusion allow.

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "codegen/schedule.h"
#include "codegen/schedule_parts.h"

namespace fxfuser::codegen {
namespace {

bool divides(std::int64_t vector, std::int64_t value) {
  return value % vector == 0;
}

bool aligned_load(const Fusion& fusion, const Expr& load, int axis, std::int64_t vector) {
  if (!aligned_form(fusion, load.form, axis, vector)) return false;
  for (const Indirect& term : load.indirect) {
    const std::uint64_t depends = fusion.body[term.expr].depends;
    if ((depends & axis_bit(static_cast<std::size_t>(axis))) != 0 || !divides(vector, term.stride)) return false;
  }
  return true;
}

/// A whole vector lies on one side of the bound.
bool whole_bound(const Fusion& fusion, const Bound& bound, int axis, std::int64_t vector) {
  if (coefficient(bound.form, axis) == 0) return true;
  return aligned_form(fusion, bound.form, axis, vector) && divides(vector, bound.low) && divides(vector, bound.high);
}

bool whole_bounds(const Fusion& fusion, int axis, std::int64_t vector) {
  const auto all = [&](const std::vector<Bound>& bounds) {
    return std::all_of(bounds.begin(), bounds.end(), [&](const Bound& b) { return whole_bound(fusion, b, axis, vector); });
  };
  return std::all_of(fusion.body.begin(), fusion.body.end(), [&](const Expr& e) { return all(e.bounds); }) &&
         std::all_of(fusion.outputs.begin(), fusion.outputs.end(), [&](const FusionOutput& o) { return all(o.bounds); });
}

/// The tensors that a vector of this width may be loaded from and stored to, and what an element costs then.
struct Access {
  std::vector<bool> inputs, outputs;
  double cost = 0;  // memory instructions an element
};

Access access_with(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, int axis,
                   std::int64_t vector) {
  Access access;
  const auto too_wide = [&](DType dtype) { return vector * ir::itemsize(dtype) > arch.vector_bytes; };
  access.inputs.assign(fusion.inputs.size(), false);
  access.outputs.assign(fusion.outputs.size(), false);
  std::vector<bool> refused(fusion.inputs.size(), false);
  for (const Expr& expr : fusion.body) {
    if (expr.kind != ExprKind::Load) continue;
    if (aligned_load(fusion, expr, axis, vector))
      access.inputs[expr.input] = true;
    else if (coefficient(expr.form, axis) != 0)  // one that does not run along the axis reads a single element beside the vectors
      refused[expr.input] = true;
  }
  for (std::size_t i = 0; i < fusion.inputs.size(); ++i)
    access.inputs[i] = access.inputs[i] && !refused[i] && !fusion.inputs[i].scalar &&
                       !too_wide(fusion.inputs[i].meta.dtype) && pointer_allows(fusion, arch, options, i, vector);
  for (std::size_t o = 0; o < fusion.outputs.size(); ++o)
    access.outputs[o] =
        aligned_form(fusion, fusion.outputs[o].form, axis, vector) && !too_wide(fusion.outputs[o].meta.dtype);

  const double one = 1.0 / static_cast<double>(vector);
  const std::uint64_t streamed = has_reduce(fusion) ? fusion.reduced_mask() : ~std::uint64_t{0};
  for (const Expr& expr : fusion.body) {
    const bool moves = expr.kind == ExprKind::Load && (expr.depends & axis_bit(static_cast<std::size_t>(axis))) != 0;
    if (moves && (expr.depends & streamed) != 0) access.cost += access.inputs[expr.input] ? one : 1.0;
  }
  for (std::size_t o = 0; o < fusion.outputs.size(); ++o)
    if (coefficient(fusion.outputs[o].form, axis) != 0 && (!has_reduce(fusion) || is_full_level(fusion, fusion.outputs[o])))
      access.cost += access.outputs[o] ? one : 1.0;
  return access;
}

/// Bytes of the widest tensor that runs along the axis element by element; 0 when none does. What is read or written once a
/// row of a reduction doesn't limit the vectors of the rest.
std::int64_t widest_along(const Fusion& fusion, int axis) {
  const std::uint64_t streamed = has_reduce(fusion) ? fusion.reduced_mask() : 0;
  std::int64_t widest = 0;
  for (const Expr& expr : fusion.body)
    if (expr.kind == ExprKind::Load && coefficient(expr.form, axis) == 1 &&
        (streamed == 0 || (expr.depends & streamed) != 0))
      widest = std::max(widest, ir::itemsize(fusion.inputs[expr.input].meta.dtype));
  for (const FusionOutput& output : fusion.outputs)
    if (coefficient(output.form, axis) == 1 && (streamed == 0 || is_full_level(fusion, output)))
      widest = std::max(widest, ir::itemsize(output.meta.dtype));
  return widest;
}

/// Smallest and largest value of a form over the space, saturating.
struct Range {
  std::int64_t low = 0, high = 0;
  void add(std::int64_t step, std::int64_t count) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(step, count, &reach)) reach = step < 0 ? -kFar : kFar;
    std::int64_t& side = reach < 0 ? low : high;
    if (__builtin_add_overflow(side, reach, &side)) side = reach < 0 ? -kFar : kFar;
  }
  static constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4;
};

Range range_of(const Fusion& fusion, const Affine& form) {
  Range range{form.offset, form.offset};
  for (std::size_t a = 0; a < form.coeff.size(); ++a)
    range.add(form.coeff[a], std::max<std::int64_t>(fusion.axes[a].size - 1, 0));
  return range;
}

}  // namespace

bool aligned_form(const Fusion& fusion, const Affine& form, int axis, std::int64_t vector) {
  if (coefficient(form, axis) != 1 || !divides(vector, form.offset)) return false;
  for (std::size_t a = 0; a < form.coeff.size(); ++a)
    if (static_cast<int>(a) != axis && fusion.axes[a].size > 1 && !divides(vector, form.coeff[a])) return false;
  return true;
}

bool pointer_allows(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, std::size_t input, std::int64_t vector) {
  if (arch.target == Target::Host) return true;  // unaligned vectors are as good there
  const int known = input < options.input_alignment.size() ? options.input_alignment[input] : 0;
  return divides(vector * ir::itemsize(fusion.inputs[input].meta.dtype), known > 0 ? known : 16);
}

void choose_vector(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, int axis, int max_vector,
                   Schedule& schedule) {
  schedule.vector = 1;
  schedule.shifted = false;
  schedule.across_input.clear();
  schedule.vector_input.assign(fusion.inputs.size(), false);
  schedule.vector_output.assign(fusion.outputs.size(), false);
  if (axis < 0 || static_cast<std::size_t>(axis) >= fusion.axes.size()) return;
  const std::int64_t widest = widest_along(fusion, axis);
  if (widest == 0) return;
  const std::int64_t size = fusion.axes[static_cast<std::size_t>(axis)].size;
  double best = std::numeric_limits<double>::infinity();
  const std::int64_t limit = std::min<std::int64_t>(floor_pow2(max_vector), floor_pow2(arch.vector_bytes / widest));
  for (std::int64_t vector = limit; vector > 1; vector /= 2) {
    if (size < vector || !divides(vector, size) || !whole_bounds(fusion, axis, vector)) continue;
    Access access = access_with(fusion, arch, options, axis, vector);
    const bool any = std::find(access.inputs.begin(), access.inputs.end(), true) != access.inputs.end() ||
                     std::find(access.outputs.begin(), access.outputs.end(), true) != access.outputs.end();
    if (!any || access.cost >= best) continue;
    best = access.cost;
    schedule.vector = static_cast<int>(vector);
    schedule.vector_input = std::move(access.inputs);
    schedule.vector_output = std::move(access.outputs);
  }
}

void choose_vector(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, int axis,
                   Schedule& schedule) {
  choose_vector(fusion, arch, options, axis, arch.vector_bytes, schedule);
}

bool loads_vectors(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, const Expr& load, int axis, std::int64_t vector) {
  return load.bounds.empty() && divides(vector, fusion.axes[static_cast<std::size_t>(axis)].size) && aligned_load(fusion, load, axis, vector) &&
         pointer_allows(fusion, arch, options, load.input, vector);
}

int choose_index_bits(const Fusion& fusion) {
  // Threads of the last block count past the end before they are masked; no block covers more than this.
  constexpr std::int64_t kSlack = 1 << 20;
  constexpr std::int64_t kLimit = std::numeric_limits<std::int32_t>::max() - kSlack;
  const auto fits = [&](const Range& range) { return range.low >= -kLimit && range.high <= kLimit; };
  std::int64_t count = 1;
  for (const Axis& axis : fusion.axes) {
    if (axis.size == 0) return 32;
    if (__builtin_mul_overflow(count, axis.size, &count)) return 64;
  }
  if (count > kLimit) return 64;
  for (const Expr& expr : fusion.body) {
    Range range = range_of(fusion, expr.form);
    for (const Indirect& term : expr.indirect) range.add(term.stride, std::max<std::int64_t>(term.extent - 1, 0));
    if (!fits(range)) return 64;
    for (const Bound& bound : expr.bounds)
      if (!fits(range_of(fusion, bound.form))) return 64;
  }
  for (const FusionOutput& output : fusion.outputs) {
    if (!fits(range_of(fusion, output.form))) return 64;
    for (const Bound& bound : output.bounds)
      if (!fits(range_of(fusion, bound.form))) return 64;
  }
  return 32;
}

}  // namespace fxfuser::codegen
