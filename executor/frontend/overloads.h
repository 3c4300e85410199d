#pragma once
// Dispatcher schemas as plain overloads.

#include <optional>
#include <string>
#include <vector>

#include "executor/frontend/signature.h"

namespace fxfuser::frontend {

/// The overload of a target ("aten.add.Tensor"), its parameters under the names of `form` or, without one, of the schema.
/// nullopt when the dispatcher has no such operator, or one whose results a definition can't name (lists), or that writes.
std::optional<OpOverload> read_overload(const std::string& target, const ir::OpTarget* form);

/// The target of ATen's op of this name that the definition means: the plain overload, else the first functional one; empty when
/// there is none.
std::string aten_target(const std::string& name);

/// The schema's argument names and defaults, `self` called `arg`.
std::vector<SignatureParam> schema_params(const std::string& target);

}  // namespace fxfuser::frontend
