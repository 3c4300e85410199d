#pragma once
// JSON text -> rows, each checked on its own; OpTable checks them against one another.

#include <memory>
#include <string_view>
#include <vector>

#include "partitioner/ir/op_table.h"

namespace fxfuser::ir {

/// Throws Error(Value) naming `source` and the row.
std::vector<std::unique_ptr<OpRow>> load_rows(std::string_view text, std::string_view source);

}  // namespace fxfuser::ir
