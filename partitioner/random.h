#pragma once
// Random numbers drawn in kernels: from one seed a call and device, by the number of a node and of an element.

#include <cstdint>

#include "partitioner/ir/graph.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::partitioner {

/// Added to a node's number where it needs a second word an element.
inline constexpr std::int64_t kSecondWord = std::int64_t{1} << 32;

/// What 32 random bits are below with this probability.
std::int64_t random_threshold(double probability);
/// Binary digits of a random number in [0, 1) of a floating dtype, as many as it holds exactly at all places; 0 for other dtypes.
int random_digits(ir::DType dtype);

/// Gives each random op that has a seeded form ("aten.rand.default" -> "fxfuser.seeded_rand.default", where a row names that) a seed
/// and a number of its own. A seed is drawn by one op a device, before all other nodes. Ops with a generator of their own, and those
/// whose results have no forecast, stay as they are. Node ids shift; values keep theirs, seeds come behind them.
ir::Graph with_seeds(ir::Graph graph, const ir::OpTable& table);

}  // namespace fxfuser::partitioner
