#pragma once
// Definitions as Python that makes them again.

#include <string>
#include <vector>

#include "executor/frontend/record.h"
#include "executor/frontend/signature.h"

namespace fxfuser::frontend {

/// The names of `DataType`: "Float", "Int", ... for each dtype that has one, with "Null" for Other.
const std::vector<std::pair<std::string, ir::DType>>& data_types();
std::string data_type_name(ir::DType dtype);

/// "T3" for a tensor, "S4" for a number.
std::string value_name(ir::ValueId id, ir::ValueKind kind);

/// An argument as a Python expression; values by name.
std::string python_text(const ir::Attr& attr, const FactsOf& facts = {});

/// The definition as a function of `fd`, with the name that its id gives it; `function` is the whole name.
std::string python_text(const std::vector<Record>& records, const OpSource& ops, const std::string& function);

}  // namespace fxfuser::frontend
