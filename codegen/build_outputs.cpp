// What a fusion stores, and that each element of it is stored by one point.

#include <algorithm>

#include "codegen/fusion_builder.h"

namespace fxfuser::codegen {

std::optional<ir::ValueId> FusionBuilder::reshaped_output() const {
  if (outputs_.size() != 1 || !inside(outputs_[0])) return std::nullopt;
  const ir::Node& node = graph_.node(graph_.value(outputs_[0]).producer);
  if (node.row->op != "reshape" || !ir::is_contiguous(graph_.meta(outputs_[0])) || graph_.meta(outputs_[0]).numel() == 0) return std::nullopt;
  return ir::arg(node, "self").value();
}

void FusionBuilder::place_output(ir::ValueId value) {
  const Map map = anchors_.at(value);
  FusionOutput output;
  output.value = value;
  output.meta = graph_.meta(value);
  output.expr = demand(stands_for_output_.value_or(value), map);
  output.form = dot(map, stands_for_output_ ? ir::contiguous_strides(graph_.meta(*stands_for_output_).sizes) : output.meta.strides, axis_count());
  fusion_.outputs.push_back(std::move(output));
}

std::uint64_t FusionBuilder::long_axes() const {
  std::uint64_t mask = 0;
  for (std::size_t axis = 0; axis < axis_count(); ++axis) {
    if (axes_[axis].size != 1) mask |= std::uint64_t{1} << axis;
  }
  return mask;
}

/// Folded columns are complete when the last row is: no row may read them.
void FusionBuilder::check_columns() const {
  for (const Expr& expr : fusion_.body) {
    if (!expr.folds_columns) continue;
    if ((expr.depends & ~reduced_ & long_axes()) != 0) refuse_shape("a row needs the sums of the columns");
    if (expr.kind == ExprKind::Reduce && (expr.over & reduced_) != 0) refuse_shape("sums of columns are reduced further");
    if (expr.kind == ExprKind::Reduce && fusion_.body[expr.operands[0]].folds_columns) refuse_shape("sums of columns are reduced further");
  }
}

/// Each element is written by exactly one point: the logical index over the output's axes is a mixed-radix number without gaps.
void FusionBuilder::check_output(const FusionOutput& output, const Map& map) const {
  const ir::TensorMeta& meta = output.meta;
  if (meta.numel() == 0) return;
  const Affine logical = dot(map, ir::contiguous_strides(graph_.meta(stands_for_output_.value_or(output.value)).sizes), axis_count());
  std::vector<std::pair<std::int64_t, std::int64_t>> terms;  // coefficient, size
  std::uint64_t used = 0;
  for (std::size_t axis = 0; axis < axis_count(); ++axis) {
    if (axes_[axis].size == 1) continue;
    if (logical.coeff[axis] == 0) continue;
    used |= std::uint64_t{1} << axis;
    terms.emplace_back(logical.coeff[axis], axes_[axis].size);
  }
  std::sort(terms.begin(), terms.end());
  std::int64_t expected = 1;
  for (const auto& [coeff, size] : terms) {
    if (coeff != expected) refuse_shape("an output is not written element by element");
    expected *= size;
  }
  if (expected != meta.numel() || logical.offset != 0) refuse_shape("an output is not covered");
  const std::uint64_t reduced = reduced_ & long_axes(), kept = long_axes() & ~reduced_;
  if (fusion_.body[output.expr].folds_columns) {
    if (used != reduced) refuse_shape("sums of columns are stored along other axes");
    return;
  }
  if ((used & kept) != kept) refuse_shape("an output lacks an axis of the space");
  if ((used & reduced) != 0 && (used & reduced) != reduced) refuse_shape("an output has some of the reduced axes");
  if ((fusion_.body[output.expr].depends & ~used) != 0) refuse_shape("an output depends on an axis that it lacks");
}

}  // namespace fxfuser::codegen
