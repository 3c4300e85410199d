#pragma once
// Where a view of a tensor lies in the tensor's memory.

#include <functional>
#include <optional>

#include "partitioner/ir/graph.h"

namespace fxfuser::codegen {

/// Strides that make `sizes` a view of a tensor of `from`, or nullopt where the data would have to move.
std::optional<ir::Sizes> reshaped_strides(const ir::Sizes& from, const ir::Sizes& strides, const ir::Sizes& sizes);

struct ViewMemory {
  ir::ValueId root = ir::kNoValue;  // the tensor whose memory it is
  ir::Sizes strides;                // elements, from the root's first one
};

/// The memory of `value`, through view nodes up to the first value that `is_view` is false of; nullopt where one of them moves data
/// or has an origin of its own.
std::optional<ViewMemory> memory_of(const ir::Graph& graph, ir::ValueId value, const std::function<bool(ir::ValueId)>& is_view);

}  // namespace fxfuser::codegen
