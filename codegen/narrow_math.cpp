#include "codegen/narrow_math.h"

#include <algorithm>
#include <string_view>

namespace fxfuser::codegen {
namespace {

/// Does a small change of an operand change the result of this expression by little? Of functions that are not ours nothing is known.
bool is_smooth(const ir::Expr& pieces) {
  static const std::vector<std::string_view> jumps{"?",   "<",    ">",     "<=",   ">=",        "==",        "!=",  "&",    "|",       "ceil", "div_floor", "div_trunc",
                                                   "floor", "fmod", "frac", "isinf", "isfinite", "isnan", "nextafter", "remainder", "rint", "shl", "shr", "sign", "signbit", "trunc"};
  return std::none_of(pieces.begin(), pieces.end(), [](const ir::ExprPiece& piece) {
    return piece.kind == ir::ExprPiece::Kind::Function || (piece.kind == ir::ExprPiece::Kind::Text && std::find(jumps.begin(), jumps.end(), piece.text) != jumps.end());
  });
}

/// Do the operands of an expression stay narrow when the expression itself is?
bool hands_on(const Expr& expr) {
  if (!ir::is_floating(expr.dtype)) return false;
  if (expr.kind == ExprKind::Compute) return ir::is_floating(expr.compute) && is_smooth(expr.row->expr_cuda);
  if (expr.kind == ExprKind::Reduce) return !expr.row->arg_state;
  return expr.kind == ExprKind::Cast || expr.kind == ExprKind::Select;
}

}  // namespace

std::vector<bool> narrow_values(const Fusion& fusion) {
  std::vector<bool> narrow(fusion.body.size(), !fusion.eager_rounding);
  for (const FusionOutput& output : fusion.outputs) {
    if (!ir::is_reduced_float(output.meta.dtype)) narrow[output.expr] = false;
  }
  for (std::size_t id = fusion.body.size(); id-- > 0;) {
    const Expr& expr = fusion.body[id];
    for (const Indirect& term : expr.indirect) narrow[term.expr] = false;
    const bool rounds = expr.kind == ExprKind::Cast && expr.rounds && ir::is_reduced_float(expr.dtype);
    if (rounds || (narrow[id] && hands_on(expr))) continue;
    for (std::uint32_t operand : expr.operands) narrow[operand] = false;
  }
  return narrow;
}

}  // namespace fxfuser::codegen
