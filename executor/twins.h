#pragma once
// Equal partitions, such as those of a model's equal layers: on equal inputs one plan serves them all.

#include <cstdint>
#include <vector>

#include "partitioner/partition.h"

namespace fxfuser::executor {

/// By partition: the first one that computes the same from its inputs (its own index when there is none before it).
std::vector<std::uint32_t> twins_of(const ir::Graph& graph, const std::vector<partitioner::Partition>& partitions);

/// Joins equal partitions that make single numbers of single numbers among the graph's inputs, such as the counters of batch norms:
/// they share nothing but the launch, which is all that they cost. Equal, so that what is refused when it is opened takes nothing along
/// that would not be refused too; and of inputs, so that no order is lost.
void join_equal_numbers(const ir::Graph& graph, std::vector<partitioner::Partition>& partitions);

}  // namespace fxfuser::executor
