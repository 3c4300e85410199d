#include "codegen/online_sums.h"

#include <algorithm>

#include "codegen/fusion_passes.h"

namespace fxfuser::codegen {
namespace {

bool computes(const Expr& expr, const char* op) { return (expr.kind == ExprKind::Compute || expr.kind == ExprKind::Reduce) && expr.row->op == op; }

/// a - b: the row's third operand is a number.
bool is_plain_difference(const Expr& expr) {
  return computes(expr, "sub") && expr.operands.size() == 2 &&
         std::all_of(expr.attrs.begin(), expr.attrs.end(), [](const auto& attr) { return attr.first != "alpha" || attr.second == ir::Attr(std::int64_t{1}) || attr.second == ir::Attr(1.0); });
}

}  // namespace

std::optional<std::uint32_t> online_top(const Fusion& fusion, std::uint32_t sum) {
  const auto& body = fusion.body;
  if (fusion.eager_rounding || !computes(body[sum], "sum") || !ir::is_floating(body[sum].dtype) || body[sum].folds_columns) return std::nullopt;
  const Expr& power = body[body[sum].operands[0]];
  if (!computes(power, "exp") || power.dtype != body[sum].dtype) return std::nullopt;
  const Expr& below = body[power.operands[0]];
  if (!is_plain_difference(below) || below.dtype != power.dtype) return std::nullopt;
  const std::uint32_t top = below.operands[1];
  const bool pairs = computes(body[top], "amax") && body[top].dtype == power.dtype && body[top].over == body[sum].over && body[top].operands[0] == below.operands[0];
  return pairs && fusion.reduced_numel() > 0 ? std::optional(top) : std::nullopt;
}

std::uint32_t online_rounds(const Fusion& fusion) {
  std::uint32_t rounds = 0;
  for (const Accumulator& state : plan_passes(fusion, true).accumulators) rounds = std::max(rounds, state.pass + 1);
  return rounds;
}

}  // namespace fxfuser::codegen
