#include "codegen/host/arg_lanes.h"

#include "codegen/expr_writer.h"

namespace fxfuser::codegen {

bool positions_rise(const Fusion& fusion, const Expr& reduce, const std::vector<std::size_t>& reduced) {
  if (reduce.operands.size() < 2) return true;
  const Expr& where = fusion.body[reduce.operands[1]];
  if (where.kind != ExprKind::Index) return false;
  std::int64_t span = 0;  // from the first to the last position of the axes further in
  for (std::size_t i = reduced.size(); i-- > 0;) {
    const std::int64_t step = where.form.coeff[reduced[i]];
    if (step <= span) return false;
    span += step * (fusion.axes[reduced[i]].size - 1);
  }
  return true;
}

std::string later_wins(const Expr& reduce, const std::string& best, const std::string& fresh) {
  std::string text = arg_fold_text(reduce, best, fresh, "0", "1");
  // The fold of an arg reduction is made of comparisons: evaluating all of them is cheaper than a branch.
  for (const char* both : {"&&", "||"}) {
    for (std::size_t at = text.find(both); at != std::string::npos; at = text.find(both, at)) text.erase(at, 1);
  }
  return text;
}

}  // namespace fxfuser::codegen
