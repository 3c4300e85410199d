#pragma once
// The extra predicates that rows name: a closed list, each looking parameters up by the row's own names.

#include <string_view>
#include <utility>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/reason.h"

namespace fxfuser::partitioner {

using CheckFunction = Support (*)(const ir::Graph&, const ir::Node&);

/// Name and predicate of every built-in check, by name.
const std::vector<std::pair<std::string_view, CheckFunction>>& builtin_checks();

/// Those that belong to one family of rows. (checks_rows.cpp)
const std::vector<std::pair<std::string_view, CheckFunction>>& row_checks();

/// True when the node writes what its schema does not admit (a batch norm's running statistics) and does so for these
/// arguments: a row with a training flag that is off writes nothing.
bool has_hidden_writes(const ir::Node& node);

/// Is an argument what the overload has when it is not given? Numbers other than False never are: the schema is not here.
bool is_default_argument(const ir::Attr& attr, const ir::Device& device);

}  // namespace fxfuser::partitioner
