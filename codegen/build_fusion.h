#pragma once
// A set of canonical nodes -> one Fusion, or the reason why one kernel can't hold them. Demand-driven: the outputs are asked
// for at points of the iteration space and every operand at the point that its consumer's index map gives; views only
// rewrite the map. Reshapes refine axes (an axis splits where a dim boundary falls inside it), afterwards dims that are
// contiguous in every tensor merge again.

#include <variant>
#include <vector>

#include "codegen/fusion.h"
#include "partitioner/ir/graph.h"
#include "partitioner/reason.h"

namespace fxfuser::codegen {

using FusionOrReason = std::variant<Fusion, partitioner::Reason>;

/// `nodes` ascending, all in `graph` (canonical). `outputs`: the values that must be stored. Values produced outside
/// `nodes` are the fusion's inputs. Output metas must carry strides. The result is collapsed and analyzed.
FusionOrReason build_fusion(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes,
                            const std::vector<ir::ValueId>& outputs);

/// Drops axes of size 1, orders axes by memory (kept and reduced each outermost first), merges neighbours that every form
/// treats as one. (index_map.cpp)
void collapse(Fusion& fusion);

}  // namespace fxfuser::codegen
