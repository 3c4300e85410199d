#include "codegen/schedule_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/expr_writer.h"
#include "codegen/fusion_passes.h"
#include "codegen/online_sums.h"

namespace fxfuser::codegen {
namespace {

constexpr std::size_t kMaxTensors = 64;    // pointers and their strides fit the 4 KiB of a launch
constexpr std::int64_t kHostTask = 32768;  // elements of simple work that pay for waking a thread
constexpr int kSimpleSlots = 8;            // a load, a store and a few operations

constexpr std::int64_t kHeldShare = 128;   // a row of this share of an SM's registers (512 elements on large machines) is best held in them
constexpr std::int64_t kStaticShared = 48 * 1024;  // bytes a block may declare

constexpr int kLoadSlots = 2;  // address and load
constexpr int kStoreSlots = 2;
constexpr int kConvertSlots = 1;
constexpr int kSelectSlots = 3;   // compare, compare, select
constexpr int kSpecialSlots = 8;  // special-function units run at an eighth of the rate

int expr_slots(const Expr& expr) {
  const bool narrow = ir::is_reduced_float(expr.dtype);
  switch (expr.kind) {
    case ExprKind::Load:
      return kLoadSlots + (narrow ? kConvertSlots : 0) + 2 * static_cast<int>(expr.indirect.size());
    case ExprKind::Compute:
    case ExprKind::Reduce:
      return expr.row == nullptr ? 1 : std::max(expr.row->cost_slots, 1) + kSpecialSlots * expr.row->cost_special;
    case ExprKind::Cast:
      return narrow ? 2 * kConvertSlots : kConvertSlots;
    case ExprKind::Select:
      return kSelectSlots * static_cast<int>(std::max<std::size_t>(expr.bounds.size(), 1));
    case ExprKind::Index:
      return 1;
    case ExprKind::Number:
    case ExprKind::Scalar:
      return 0;
  }
  return 1;
}

std::uint64_t axes_longer_than_one(const Fusion& fusion) {
  std::uint64_t mask = 0;
  for (std::size_t a = 0; a < fusion.axes.size(); ++a)
    if (fusion.axes[a].size != 1) mask |= axis_bit(a);
  return mask;
}

bool covers_space(const Fusion& fusion, const FusionOutput& output) {
  std::uint64_t bounded = 0;
  for (const Bound& bound : output.bounds) bounded |= axes_of(bound.form);
  const bool full = is_full_level(fusion, output), columns = fusion.body[output.expr].folds_columns;
  if (full && iteration_count(fusion) == 0) return true;  // nothing is written
  const std::uint64_t addressed = axes_of(output.form) | bounded;
  for (std::size_t a = 0; a < fusion.axes.size(); ++a) {
    if (fusion.axes[a].size <= 1 || (addressed & axis_bit(a)) != 0) continue;
    if (full || fusion.axes[a].reduced == columns) return false;  // several points would write the same element
  }
  return true;
}

}  // namespace

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a <= 0 ? 0 : (a - 1) / b + 1;
}

std::int64_t floor_pow2(std::int64_t value) {
  return value < 1 ? 1 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
}

std::int64_t ceil_pow2(std::int64_t value) {
  return value < 1 ? 1 : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(value)));
}

std::vector<int> loads_by_input(const Fusion& fusion) {
  std::vector<int> loads(fusion.inputs.size(), 0);
  for (const Expr& expr : fusion.body)
    if (expr.kind == ExprKind::Load) ++loads[expr.input];
  return loads;
}

std::uint64_t axes_of(const Affine& form) {
  std::uint64_t mask = 0;
  for (std::size_t a = 0; a < form.coeff.size(); ++a)
    if (form.coeff[a] != 0) mask |= axis_bit(a);
  return mask;
}

std::int64_t coefficient(const Affine& form, int axis) {
  const auto a = static_cast<std::size_t>(axis);
  return axis >= 0 && a < form.coeff.size() ? form.coeff[a] : 0;
}

std::int64_t iteration_count(const Fusion& fusion) {
  std::int64_t count = 1;
  for (const Axis& axis : fusion.axes) count *= axis.size;
  return count;
}

bool has_reduce(const Fusion& fusion) {
  return std::any_of(fusion.body.begin(), fusion.body.end(), [](const Expr& e) { return e.kind == ExprKind::Reduce; });
}

int reduce_rounds(const Fusion& fusion) {
  std::uint32_t rounds = 0;
  for (const Expr& expr : fusion.body)
    if (expr.kind == ExprKind::Reduce && !expr.folds_columns) rounds = std::max(rounds, expr.stage);
  return static_cast<int>(rounds);
}

int least_rounds(const Fusion& fusion, const ArchInfo& arch) {
  const bool rows = arch.target == Target::Cuda && !fusion.axes.empty() && fusion.axes.back().reduced && fusion.reduced_numel() > arch.registers_per_sm / kHeldShare;
  return rows ? static_cast<int>(online_rounds(fusion)) : reduce_rounds(fusion);
}

bool folds_columns(const Fusion& fusion) {
  return std::any_of(fusion.body.begin(), fusion.body.end(), [](const Expr& e) { return e.folds_columns; });
}

bool is_full_level(const Fusion& fusion, const FusionOutput& output) {
  if (fusion.body[output.expr].folds_columns) return false;
  const std::uint64_t axes = axes_of(output.form) | fusion.body[output.expr].depends;
  return (axes & fusion.reduced_mask() & axes_longer_than_one(fusion)) != 0;
}

std::int64_t widest_itemsize(const Fusion& fusion) {
  std::int64_t widest = 1;
  for (const Expr& expr : fusion.body)
    if (expr.kind == ExprKind::Load) widest = std::max(widest, ir::itemsize(fusion.inputs[expr.input].meta.dtype));
  for (const FusionOutput& output : fusion.outputs) widest = std::max(widest, ir::itemsize(output.meta.dtype));
  return widest;
}

std::int64_t host_grain(const Fusion& fusion, std::int64_t elements_per_item) {
  const std::int64_t work = std::max<std::int64_t>(slots_per_element(fusion) / kSimpleSlots, 1);
  return std::max<std::int64_t>(ceil_div(kHostTask, work * std::max<std::int64_t>(elements_per_item, 1)), 1);
}

std::int64_t deepest_columns(const Fusion& fusion, const ArchInfo& arch, std::int64_t width, bool compensated) {
  std::int64_t bytes = 0;
  for (const Accumulator& state : plan_passes(fusion).accumulators) bytes += chain_bytes(fusion.body[state.expr], compensated);
  return floor_pow2(std::min(kStaticShared, arch.shared_per_block) / std::max<std::int64_t>(bytes * width, 1));
}

int slots_per_element(const Fusion& fusion) {
  std::uint64_t all = 0;
  for (std::size_t a = 0; a < fusion.axes.size(); ++a)
    if (fusion.axes[a].size > 1) all |= axis_bit(a);
  const bool rows = has_reduce(fusion) && fusion.reduced_mask() != 0;
  int slots = 0;
  for (const Expr& expr : fusion.body) {
    // What depends on kept axes only is done once a row, which long rows hide; a Reduce folds every element.
    const std::uint64_t needs = expr.kind == ExprKind::Reduce ? all : expr.depends;
    if (rows && (needs & fusion.reduced_mask()) == 0) continue;
    if (!rows && all != 0 && (needs & all) == 0) continue;  // loop invariant
    slots += expr_slots(expr);
  }
  for (const FusionOutput& output : fusion.outputs) {
    if (rows && !is_full_level(fusion, output)) continue;
    slots += kStoreSlots + (ir::is_reduced_float(output.meta.dtype) ? kConvertSlots : 0);
  }
  return slots;
}

std::optional<partitioner::Reason> no_schedule(std::string detail) {
  return partitioner::Reason{partitioner::ReasonCode::NoSchedule, std::move(detail)};
}

std::optional<partitioner::Reason> refuse_any(const Fusion& fusion) {
  if (fusion.axes.size() > 64) return no_schedule("more than 64 axes");
  if (fusion.inputs.size() + fusion.outputs.size() > kMaxTensors)
    return no_schedule(
        fmt::format("{} tensors, a kernel takes at most {}", fusion.inputs.size() + fusion.outputs.size(), kMaxTensors));
  const std::uint64_t reduced = fusion.reduced_mask();
  for (const Expr& expr : fusion.body) {
    if (expr.kind != ExprKind::Reduce || expr.over == reduced) continue;
    if (expr.folds_columns && expr.over == (axes_longer_than_one(fusion) & ~reduced) && !expr.row->arg_state) continue;
    if (expr.folds_columns) return no_schedule(fmt::format("column reduction {} beside row reductions", expr.note));
    return no_schedule(fmt::format("reduction {} folds only some of the reduced axes", expr.note));
  }
  for (const FusionOutput& output : fusion.outputs)
    if (!covers_space(fusion, output))
      return no_schedule("an output is smaller than the iteration space, its elements would be written many times");
  return std::nullopt;
}

}  // namespace fxfuser::codegen
