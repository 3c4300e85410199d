#include "codegen/fusion_passes.h"

#include <algorithm>

#include "codegen/online_sums.h"

namespace fxfuser::codegen {
namespace {

template <typename Fn>
void for_each_operand(const Expr& expr, Fn&& fn) {
  for (std::uint32_t operand : expr.operands) fn(operand);
  for (const Indirect& term : expr.indirect) fn(term.expr);
}

bool shares_state(const Fusion& fusion, const Expr& a, const Expr& b) {
  (void)fusion;
  return a.row == b.row && a.row->arg_state && a.operands == b.operands && a.over == b.over;
}

/// The state that a sum joins, if there is one that it can.
Accumulator* online_state(const Fusion& fusion, Passes& passes, std::uint32_t sum) {
  const std::optional<std::uint32_t> top = online_top(fusion, sum);
  const auto found = std::find_if(passes.accumulators.begin(), passes.accumulators.end(), [&](const Accumulator& state) { return top == state.expr && !state.online; });
  return found == passes.accumulators.end() ? nullptr : &*found;
}

}  // namespace

Passes plan_passes(const Fusion& fusion, bool online) {
  Passes out;
  const std::uint64_t reduced = fusion.reduced_mask();
  out.pass.assign(fusion.body.size(), 0);
  out.full.assign(fusion.body.size(), false);
  for (std::uint32_t id = 0; id < fusion.body.size(); ++id) {
    const Expr& expr = fusion.body[id];
    for_each_operand(expr, [&](std::uint32_t operand) {
      const std::uint32_t after = fusion.body[operand].kind == ExprKind::Reduce ? out.pass[operand] + 1 : out.pass[operand];
      out.pass[id] = std::max(out.pass[id], after);
    });
    out.full[id] = expr.kind != ExprKind::Reduce && !expr.folds_columns && (expr.depends & reduced) != 0;
    if (expr.kind != ExprKind::Reduce) continue;
    if (expr.folds_columns) {
      out.columns.push_back({id, {id}, out.pass[id]});
      out.count = std::max(out.count, out.pass[id] + 1);
      continue;
    }
    if (Accumulator* const state = online ? online_state(fusion, out, id) : nullptr; state != nullptr) {
      state->online = true;
      state->results.push_back(id);
      out.pass[id] = state->pass;
      continue;
    }
    out.count = std::max(out.count, out.pass[id] + 1);
    auto shared = std::find_if(out.accumulators.begin(), out.accumulators.end(),
                               [&](const Accumulator& state) { return shares_state(fusion, fusion.body[state.expr], expr); });
    if (shared == out.accumulators.end()) {
      out.accumulators.push_back({id, {id}, out.pass[id]});
    } else {
      shared->results.push_back(id);
    }
  }
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (is_full_output(fusion, out, i)) out.count = std::max(out.count, out.pass[fusion.outputs[i].expr] + (fusion.body[fusion.outputs[i].expr].kind == ExprKind::Reduce ? 2 : 1));
  }
  return out;
}

std::vector<std::uint32_t> needed_by_outputs(const Fusion& fusion, std::vector<bool> available) {
  available.resize(fusion.body.size(), false);
  std::vector<std::uint32_t> roots;
  for (const FusionOutput& output : fusion.outputs) roots.push_back(output.expr);
  return needed(fusion, roots, available);
}

std::vector<std::uint32_t> needed(const Fusion& fusion, const std::vector<std::uint32_t>& roots, const std::vector<bool>& available) {
  std::vector<bool> wanted(fusion.body.size(), false);
  for (std::uint32_t root : roots) wanted[root] = !available[root];
  for (std::size_t id = fusion.body.size(); id-- > 0;) {
    if (!wanted[id]) continue;
    for_each_operand(fusion.body[id], [&](std::uint32_t operand) {
      if (!available[operand]) wanted[operand] = true;
    });
  }
  std::vector<std::uint32_t> out;
  for (std::uint32_t id = 0; id < fusion.body.size(); ++id) {
    if (wanted[id]) out.push_back(id);
  }
  return out;
}

std::uint32_t output_pass(const Fusion& fusion, const Passes& passes, std::size_t output) {
  const std::uint32_t expr = fusion.outputs[output].expr;
  return passes.pass[expr] + (fusion.body[expr].kind == ExprKind::Reduce ? 1 : 0);
}

PassWork pass_work(const Fusion& fusion, const Passes& passes, std::uint32_t pass) {
  PassWork work;
  for (const Accumulator& state : passes.accumulators) {
    if (state.pass != pass) continue;
    work.states.push_back(&state);
    work.roots.insert(work.roots.end(), fusion.body[state.expr].operands.begin(), fusion.body[state.expr].operands.end());
  }
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (!is_full_output(fusion, passes, i) || output_pass(fusion, passes, i) != pass) continue;
    work.outputs.push_back(i);
    work.roots.push_back(fusion.outputs[i].expr);
  }
  return work;
}

bool is_column_output(const Fusion& fusion, std::size_t output) { return fusion.body[fusion.outputs[output].expr].folds_columns; }

bool is_row_output(const Fusion& fusion, const Passes& passes, std::size_t output) {
  return !is_full_output(fusion, passes, output) && !is_column_output(fusion, output);
}

bool is_full_output(const Fusion& fusion, const Passes& passes, std::size_t output) {
  const FusionOutput& out = fusion.outputs[output];
  if (is_column_output(fusion, output)) return false;
  if (passes.full[out.expr]) return true;
  const std::uint64_t reduced = fusion.reduced_mask();
  for (std::size_t axis = 0; axis < fusion.axes.size(); ++axis) {
    if (((reduced >> axis) & 1) != 0 && out.form.coeff[axis] != 0) return true;  // a row value stored along the row
  }
  return false;
}

}  // namespace fxfuser::codegen
