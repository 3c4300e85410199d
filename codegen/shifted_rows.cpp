#include "codegen/shifted_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "codegen/schedule_parts.h"
#include "partitioner/ir/error.h"

namespace fxfuser::codegen {
namespace {

constexpr std::int64_t kLeastPacks = 4;    // of a row: the first and the last of them move element by element
constexpr std::int64_t kLeastBytes = 8;    // of a pack of the widest tensor that moves in packs
constexpr double kAcross = 3;              // what a pack that lies across two costs, beside one that doesn't
constexpr double kApart = 4;               // what elements cost that neighbouring threads access a pack apart, beside such side by side
constexpr double kLeastGain = 2;

int last_axis(const Fusion& fusion) { return static_cast<int>(fusion.axes.size()) - 1; }

/// Does an element's address, or whether it is there, depend on where in the row it is in another way than by its place in memory?
bool bounded_along(const Fusion& fusion, int axis) {
  const auto along = [&](const std::vector<Bound>& bounds) {
    return std::any_of(bounds.begin(), bounds.end(), [&](const Bound& bound) { return coefficient(bound.form, axis) != 0; });
  };
  return std::any_of(fusion.body.begin(), fusion.body.end(), [&](const Expr& e) { return along(e.bounds); }) ||
         std::any_of(fusion.outputs.begin(), fusion.outputs.end(), [&](const FusionOutput& o) { return along(o.bounds); });
}

bool is_streamed(const Fusion& fusion, const FusionOutput& output) {
  return coefficient(output.form, last_axis(fusion)) != 0 && (!has_reduce(fusion) || is_full_level(fusion, output));
}

bool moves_along(const Fusion& fusion, const Expr& load) {
  if (load.kind != ExprKind::Load || fusion.inputs[load.input].scalar) return false;
  const auto along = axis_bit(static_cast<std::size_t>(last_axis(fusion)));
  return coefficient(load.form, last_axis(fusion)) != 0 ||
         std::any_of(load.indirect.begin(), load.indirect.end(), [&](const Indirect& term) { return (fusion.body[term.expr].depends & along) != 0; });
}

/// Do rows of both forms have the same shift?
bool shifts_alike(const Fusion& fusion, const Affine& a, const Affine& b, std::int64_t vector) {
  if ((a.offset - b.offset) % vector != 0) return false;
  for (int axis = 0; axis < last_axis(fusion); ++axis) {
    const bool moves = fusion.axes[static_cast<std::size_t>(axis)].size > 1;
    if (moves && (coefficient(a, axis) - coefficient(b, axis)) % vector != 0) return false;
  }
  return true;
}

struct Access {
  std::vector<bool> packs, across, outputs;  // `packs` has those across, too
  bool shifts = false;                       // does any have the row's shift?
  double cost = 0;                           // memory instructions an element, or what takes as long
};

class Accesses {
 public:
  Accesses(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, std::int64_t vector, const Affine& shift)
      : fusion_(fusion), arch_(arch), options_(options), vector_(vector), shift_(shift) {}

  Access find() const {
    Access access;
    access.packs.assign(fusion_.inputs.size(), true);
    access.across.assign(fusion_.inputs.size(), false);
    access.outputs.assign(fusion_.outputs.size(), false);
    const double one = 1.0 / static_cast<double>(vector_);
    for (const Expr& load : fusion_.body) {
      if (!moves_along(fusion_, load)) continue;
      if (!has_packs(load)) access.packs[load.input] = false;
      else if (is_across(load)) access.across[load.input] = true;
    }
    std::vector<bool> moves(fusion_.inputs.size(), false);
    for (const Expr& load : fusion_.body) {
      if (!moves_along(fusion_, load)) continue;
      moves[load.input] = true;
      access.cost += !access.packs[load.input] ? kApart : access.across[load.input] ? kAcross * one : one;
    }
    for (std::size_t i = 0; i < fusion_.inputs.size(); ++i) {
      access.packs[i] = access.packs[i] && moves[i];
      access.across[i] = access.across[i] && access.packs[i];
      access.shifts = access.shifts || (access.packs[i] && !access.across[i]);
    }
    for (std::size_t o = 0; o < fusion_.outputs.size(); ++o) {
      const FusionOutput& output = fusion_.outputs[o];
      if (!is_streamed(fusion_, output)) continue;
      access.outputs[o] = coefficient(output.form, last_axis(fusion_)) == 1 && output.bounds.empty() && fits(output.meta.dtype, arch_.vector_bytes) &&
                          shifts_alike(fusion_, output.form, shift_, vector_);
      access.cost += access.outputs[o] ? one : kApart;
      access.shifts = access.shifts || access.outputs[o];
    }
    return access;
  }

 private:
  bool fits(DType dtype, std::int64_t most) const { return vector_ * ir::itemsize(dtype) <= most && vector_ * ir::itemsize(dtype) >= 4; }

  bool is_across(const Expr& load) const { return !load.indirect.empty() || !shifts_alike(fusion_, load.form, shift_, vector_); }

  bool has_packs(const Expr& load) const {
    const auto along = axis_bit(static_cast<std::size_t>(last_axis(fusion_)));
    const bool steps = std::any_of(load.indirect.begin(), load.indirect.end(), [&](const Indirect& term) { return (fusion_.body[term.expr].depends & along) != 0; });
    const DType dtype = fusion_.inputs[load.input].meta.dtype;
    // A wide weight beside narrow rows: each of its packs is moved by two instructions.
    const std::int64_t most = is_across(load) ? 2 * arch_.vector_bytes : arch_.vector_bytes, aligned = std::min<std::int64_t>(vector_, arch_.vector_bytes / ir::itemsize(dtype));
    return coefficient(load.form, last_axis(fusion_)) == 1 && !steps && load.bounds.empty() && fits(dtype, most) && pointer_allows(fusion_, arch_, options_, load.input, aligned);
  }

  const Fusion& fusion_;
  const ArchInfo& arch_;
  const ScheduleOptions& options_;
  std::int64_t vector_;
  const Affine& shift_;
};

/// What the schedule costs as it is.
double cost_of(const Fusion& fusion, const Schedule& schedule) {
  const double pack = 1.0 / schedule.vector, element = schedule.vector > 1 ? kApart : 1;
  double cost = 0;
  for (const Expr& expr : fusion.body)
    if (moves_along(fusion, expr)) cost += schedule.vector_input[expr.input] ? pack : element;
  for (std::size_t o = 0; o < fusion.outputs.size(); ++o)
    if (is_streamed(fusion, fusion.outputs[o])) cost += schedule.vector_output[o] ? pack : element;
  return cost;
}

/// What decides the shift: an output that covers the space, for stores can't lie across packs; or a load, one that differs from row to
/// row where there is such a one. Nothing where that moves in packs already.
std::optional<Affine> deciding_form(const Fusion& fusion, const Schedule& schedule) {
  const int axis = last_axis(fusion);
  for (std::size_t o = 0; o < fusion.outputs.size(); ++o) {
    const FusionOutput& output = fusion.outputs[o];
    if (!is_streamed(fusion, output) || coefficient(output.form, axis) != 1 || !output.bounds.empty()) continue;
    return schedule.vector_output[o] ? std::nullopt : std::optional<Affine>(output.form);
  }
  const std::uint64_t row = axis_bit(static_cast<std::size_t>(axis));
  const Expr* found = nullptr;
  for (const Expr& load : fusion.body) {
    if (load.kind != ExprKind::Load || coefficient(load.form, axis) != 1 || !load.bounds.empty() || !load.indirect.empty()) continue;
    const bool differs = (axes_of(load.form) & ~row) != 0;
    if (found == nullptr || differs) found = &load;
    if (differs) break;
  }
  return found == nullptr || schedule.vector_input[found->input] ? std::nullopt : std::optional<Affine>(found->form);
}

}  // namespace

void shift_rows(const Fusion& fusion, const ArchInfo& arch, const ScheduleOptions& options, std::int64_t max_vector, Schedule& schedule) {
  const int axis = last_axis(fusion);
  if (arch.target != Target::Cuda || axis < 0 || bounded_along(fusion, axis)) return;
  if (has_reduce(fusion) && fusion.reduced_mask() != axis_bit(static_cast<std::size_t>(axis))) return;
  const std::optional<Affine> shift = deciding_form(fusion, schedule);
  if (!shift) return;
  const std::int64_t size = fusion.axes[static_cast<std::size_t>(axis)].size;
  double best = cost_of(fusion, schedule) / kLeastGain;
  for (std::int64_t vector = floor_pow2(std::min<std::int64_t>(max_vector, arch.vector_bytes)); vector > 1; vector /= 2) {
    if (size < kLeastPacks * vector) continue;
    const Access access = Accesses(fusion, arch, options, vector, *shift).find();
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < fusion.inputs.size(); ++i) bytes = access.packs[i] ? std::max(bytes, vector * ir::itemsize(fusion.inputs[i].meta.dtype)) : bytes;
    for (std::size_t o = 0; o < fusion.outputs.size(); ++o) bytes = access.outputs[o] ? std::max(bytes, vector * ir::itemsize(fusion.outputs[o].meta.dtype)) : bytes;
    if (!access.shifts || bytes < kLeastBytes || access.cost > best) continue;
    best = access.cost;
    schedule.vector = static_cast<int>(vector);
    schedule.shifted = true;
    schedule.vector_input = access.packs;
    schedule.vector_output = access.outputs;
    schedule.across_input = access.across;
  }
}

std::int64_t spanned(const Schedule& schedule, std::int64_t n) { return schedule.shifted ? n + schedule.vector - 1 : n; }

std::int64_t packs_of_peer(const Schedule& schedule, std::int64_t n) { return ceil_div(ceil_div(spanned(schedule, n), schedule.vector), schedule.cluster); }

ShiftForm shift_form(const Fusion& fusion, const Schedule& schedule) {
  const auto at_start = [&](Affine form, std::string role) {
    form.coeff[static_cast<std::size_t>(last_axis(fusion))] = 0;
    return ShiftForm{std::move(form), std::move(role)};
  };
  for (std::size_t o = 0; o < fusion.outputs.size(); ++o)
    if (schedule.vector_output[o]) return at_start(fusion.outputs[o].form, fmt::format("out{}", o));
  for (std::uint32_t id = 0; id < fusion.body.size(); ++id) {
    const Expr& expr = fusion.body[id];
    if (moves_along(fusion, expr) && schedule.vector_input[expr.input] && !schedule.across_input[expr.input]) return at_start(expr.form, fmt::format("e{}", id));
  }
  FXF_ASSERT(false, "shifted rows without a tensor that has their shift");
}

std::int64_t shift_period(const Fusion& fusion, const Schedule& schedule) {
  const Affine form = shift_form(fusion, schedule).form;
  std::int64_t step = 0;
  int kept = 0;
  for (int axis = 0; axis < last_axis(fusion); ++axis) {
    if (fusion.axes[static_cast<std::size_t>(axis)].size <= 1) continue;
    step = coefficient(form, axis);
    ++kept;
  }
  return kept > 1 ? 0 : schedule.vector / std::gcd<std::int64_t>(schedule.vector, step);
}

std::int64_t load_end(const Fusion& fusion, const Expr& load) {
  std::int64_t last = load.form.offset;
  for (std::size_t a = 0; a < load.form.coeff.size(); ++a) last += std::max<std::int64_t>(load.form.coeff[a] * (fusion.axes[a].size - 1), 0);
  for (const Indirect& term : load.indirect) last += std::max<std::int64_t>(term.stride * (term.extent - 1), 0);
  return last + 1;
}

}  // namespace fxfuser::codegen
