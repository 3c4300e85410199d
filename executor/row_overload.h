#pragma once
// The overload that a row's prims and nvprims targets run as when no kernel takes them, and how its arguments follow from theirs.

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

#include "partitioner/ir/op_table.h"

namespace fxfuser::executor {

/// "aten.add.Tensor" in the dispatcher. Throws Error(Runtime) when there is no such operator.
c10::OperatorHandle find_operator(const std::string& target);

/// Has the dispatcher this overload ("aten.mm.default") or any of this op ("aten.mm")?
bool is_operator(const std::string& word);

struct RowOverload {
  c10::OperatorHandle op;
  std::string target;
  std::vector<std::string> params;  // per schema argument: the row's parameter, "" where its default is meant
};

/// For a target that is no ATen overload itself: the row's `fallback`, else its first ATen overload that takes all that the
/// target gives. nullopt where there is none.
std::optional<RowOverload> row_overload(const ir::OpRow& row, const ir::OpTarget& form);

/// Throws Error(Value) naming the row, and the overloads that there are, when its `fallback` is no operator of the dispatcher.
void check_fallbacks(const ir::OpTable& table);

}  // namespace fxfuser::executor
