#pragma once
// Equal partitions, such as those of a model's equal layers: on equal inputs one plan serves them all.

#include <cstdint>
#include <vector>

#include "partitioner/partition.h"

namespace fxfuser::executor {

/// By partition: the first one that computes the same from its inputs (its own index when there is none before it).
std::vector<std::uint32_t> twins_of(const ir::Graph& graph, const std::vector<partitioner::Partition>& partitions);

}  // namespace fxfuser::executor
