#pragma once
// Fusions written by hand, axis by axis, for tests of what reads them.

#include <utility>
#include <vector>

#include "codegen/fusion.h"

namespace fxfuser::test {

/// Axes first, then inputs, body and outputs; forms are given as one coefficient an axis.
class HandFusion {
 public:
  explicit HandFusion(std::vector<codegen::Axis> axes) { fusion_.axes = std::move(axes); }

  /// A load of a fresh input with these coefficients; returns the expression.
  std::uint32_t load(ir::Sizes coeff, std::int64_t offset = 0, ir::DType dtype = ir::DType::Float32) {
    codegen::FusionInput input;
    input.value = next_value_++;
    input.meta = meta_of(coeff, dtype);
    fusion_.inputs.push_back(input);
    codegen::Expr expr;
    expr.kind = codegen::ExprKind::Load;
    expr.dtype = expr.compute = dtype;
    expr.input = static_cast<std::uint32_t>(fusion_.inputs.size() - 1);
    expr.form = {std::move(coeff), offset};
    return add(std::move(expr));
  }

  std::uint32_t compute(std::vector<std::uint32_t> operands, ir::DType dtype = ir::DType::Float32) {
    codegen::Expr expr;
    expr.kind = codegen::ExprKind::Compute;
    expr.dtype = expr.compute = dtype;
    expr.row = &pointwise_row();
    expr.operands = std::move(operands);
    return add(std::move(expr));
  }

  /// Over all reduced axes unless said otherwise.
  std::uint32_t reduce(std::uint32_t operand, std::uint64_t over = 0, ir::DType dtype = ir::DType::Float32) {
    codegen::Expr expr;
    expr.kind = codegen::ExprKind::Reduce;
    expr.dtype = expr.compute = dtype;
    expr.row = &reduction_row();
    expr.operands = {operand};
    for (std::size_t a = 0; over == 0 && a < fusion_.axes.size(); ++a)
      if (fusion_.axes[a].reduced) expr.over |= std::uint64_t{1} << a;
    if (over != 0) expr.over = over;
    return add(std::move(expr));
  }

  void store(std::uint32_t expr, ir::Sizes coeff, ir::DType dtype = ir::DType::Float32, std::int64_t offset = 0) {
    codegen::FusionOutput output;
    output.value = next_value_++;
    output.meta = meta_of(coeff, dtype);
    output.expr = expr;
    output.form = {std::move(coeff), offset};
    fusion_.outputs.push_back(std::move(output));
  }

  codegen::Expr& expr(std::uint32_t id) { return fusion_.body[id]; }

  codegen::Fusion build() {
    codegen::analyze(fusion_);
    return fusion_;
  }

  static const ir::OpRow& pointwise_row() {
    static const ir::OpRow row = [] {
      ir::OpRow made;
      made.op = "add";
      made.tensor_params = {"self", "other"};
      made.expr_host = made.expr_cuda = {{Kind::Hole, "self"}, {Kind::Text, "+"}, {Kind::Hole, "other"}};
      return made;
    }();
    return row;
  }

  static const ir::OpRow& reduction_row() {
    static const ir::OpRow row = [] {
      ir::OpRow made;
      made.op = "sum";
      made.kind = ir::OpKind::Reduction;
      made.tensor_params = {"self"};
      made.fold = {{Kind::Hole, "a"}, {Kind::Text, "+"}, {Kind::Hole, "b"}};
      made.init = {{Kind::Text, "0"}};
      return made;
    }();
    return row;
  }

 private:
  using Kind = ir::ExprPiece::Kind;

  std::uint32_t add(codegen::Expr expr) {
    expr.form.coeff.resize(fusion_.axes.size(), 0);
    fusion_.body.push_back(std::move(expr));
    return static_cast<std::uint32_t>(fusion_.body.size() - 1);
  }

  /// One dim an axis that is addressed.
  ir::TensorMeta meta_of(const ir::Sizes& coeff, ir::DType dtype) const {
    ir::TensorMeta meta;
    meta.dtype = dtype;
    for (std::size_t a = 0; a < coeff.size(); ++a) {
      if (coeff[a] == 0) continue;
      meta.sizes.push_back(fusion_.axes[a].size);
      meta.strides.push_back(coeff[a]);
    }
    return meta;
  }

  codegen::Fusion fusion_;
  ir::ValueId next_value_ = 0;
};

}  // namespace fxfuser::test
