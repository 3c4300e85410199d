#include "codegen/fusion.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "partitioner/ir/error.h"
#include "partitioner/ir/text.h"

namespace fxfuser::codegen {
namespace {

std::uint64_t axes_in(const Affine& form) {
  std::uint64_t mask = 0;
  for (std::size_t axis = 0; axis < form.coeff.size(); ++axis) {
    if (form.coeff[axis] != 0) mask |= std::uint64_t{1} << axis;
  }
  return mask;
}

std::string text_of(const Affine& form) {
  std::string text;
  for (std::size_t axis = 0; axis < form.coeff.size(); ++axis) {
    if (form.coeff[axis] != 0) text += fmt::format("{}{}*i{}", text.empty() ? "" : " + ", form.coeff[axis], axis);
  }
  if (form.offset != 0 || text.empty()) text += fmt::format("{}{}", text.empty() ? "" : " + ", form.offset);
  return text;
}

std::string text_of(const std::vector<Bound>& bounds) {
  std::string text;
  for (const Bound& bound : bounds) text += fmt::format(" [{} <= {} < {}]", bound.low, text_of(bound.form), bound.high);
  return text;
}

std::string text_of(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::Load: {
      std::string text = fmt::format("load in{}[{}", expr.input, text_of(expr.form));
      for (const Indirect& term : expr.indirect) text += fmt::format(" + {}*%{} (of {})", term.stride, term.expr, term.extent);
      return text + "]" + text_of(expr.bounds);
    }
    case ExprKind::Number: return "number " + ir::print(expr.number);
    case ExprKind::Scalar: return fmt::format("scalar in{}", expr.input);
    case ExprKind::Index: return "index " + text_of(expr.form);
    case ExprKind::Compute: return fmt::format("{} in {} of %{}", expr.row->op, ir::name(expr.compute), fmt::join(expr.operands, ", %"));
    case ExprKind::Cast: return fmt::format("{} %{}", expr.rounds ? "cast" : "wide", expr.operands[0]);
    case ExprKind::Select: return fmt::format("select{} ? %{} : %{}", text_of(expr.bounds), expr.operands[0], expr.operands[1]);
    case ExprKind::Reduce: return fmt::format("reduce {} over {:#x} of %{}", expr.row->op, expr.over, fmt::join(expr.operands, ", %"));
  }
  return "?";
}

}  // namespace

std::uint64_t Fusion::reduced_mask() const {
  std::uint64_t mask = 0;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis].reduced) mask |= std::uint64_t{1} << axis;
  }
  return mask;
}

std::int64_t Fusion::kept_numel() const {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.reduced ? 1 : axis.size;
  return count;
}

std::int64_t Fusion::reduced_numel() const {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.reduced ? axis.size : 1;
  return count;
}

bool Fusion::has_reduction() const { return reduced_mask() != 0; }

void analyze(Fusion& fusion) {
  const std::uint64_t reduced = fusion.reduced_mask();
  for (std::size_t id = 0; id < fusion.body.size(); ++id) {
    Expr& expr = fusion.body[id];
    expr.depends = 0;
    expr.stage = 0;
    expr.folds_columns = expr.kind == ExprKind::Reduce && expr.over != 0 && reduced != 0 && (expr.over & reduced) == 0;
    const auto take = [&](std::uint32_t operand) {
      FXF_ASSERT(operand < id, "expression {} reads {} before it is made", id, operand);
      expr.depends |= fusion.body[operand].depends;
      expr.stage = std::max(expr.stage, fusion.body[operand].stage);
      expr.folds_columns = expr.folds_columns || fusion.body[operand].folds_columns;
    };
    for (std::uint32_t operand : expr.operands) take(operand);
    for (const Indirect& term : expr.indirect) take(term.expr);
    if (expr.kind == ExprKind::Load || expr.kind == ExprKind::Index) expr.depends |= axes_in(expr.form);
    for (const Bound& bound : expr.bounds) expr.depends |= axes_in(bound.form);
    if (expr.kind == ExprKind::Reduce) {
      expr.depends &= ~expr.over;
      if (!expr.folds_columns) ++expr.stage;
    }
  }
}

std::string to_string(const Fusion& fusion) {
  std::string text = "fusion on " + ir::to_string(fusion.device) + (fusion.eager_rounding ? ", eager rounding\n" : "\n");
  for (std::size_t axis = 0; axis < fusion.axes.size(); ++axis) {
    text += fmt::format("  axis i{}: {}{}\n", axis, fusion.axes[axis].size, fusion.axes[axis].reduced ? " reduced" : "");
  }
  for (std::size_t i = 0; i < fusion.inputs.size(); ++i) {
    text += fmt::format("  in{}: {}{}\n", i, ir::to_string(fusion.inputs[i].meta), fusion.inputs[i].scalar ? " scalar" : "");
  }
  for (std::size_t id = 0; id < fusion.body.size(); ++id) {
    const Expr& expr = fusion.body[id];
    text += fmt::format("  %{}: {} = {}{}\n", id, ir::name(expr.dtype), text_of(expr), expr.note.empty() ? "" : "  # " + expr.note);
  }
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    const FusionOutput& out = fusion.outputs[i];
    text += fmt::format("  out{}[{}]{} = %{}: {}\n", i, text_of(out.form), text_of(out.bounds), out.expr, ir::to_string(out.meta));
  }
  return text;
}

}  // namespace fxfuser::codegen
