#pragma once
// Arg reductions in lanes: what holds because a lane meets its elements one after the other.

#include <string>
#include <vector>

#include "codegen/fusion.h"

namespace fxfuser::codegen {

/// Does the position that `reduce` (a Reduce with arg_state) keeps rise along the reduced axes, the last one innermost?
bool positions_rise(const Fusion& fusion, const Expr& reduce, const std::vector<std::size_t>& reduced);
/// The row's predicate "take `fresh`" for a position beyond the best one's, without branches, so that loops over it vectorise.
/// `best` and `fresh` are names.
std::string later_wins(const Expr& reduce, const std::string& best, const std::string& fresh);

}  // namespace fxfuser::codegen
