#pragma once
// Makes an imported graph functional. `mutations` of a node's arguments come from its schema (given by the importer as
// argument positions) and from its row's hidden writes. A write that nobody outside can see becomes a plain op; a write to
// an input or constant becomes a functional op and a WriteBack; what can't be proved safe stays an ATen step with ordering
// edges to the nodes that alias its operands.

#include <string>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::partitioner {

/// Per imported node, what its schema says.
struct AliasInfo {
  std::vector<std::uint32_t> writes;     // argument positions that are written in place
  // outputs[i] = argument position that output i is a view of (or the written argument itself), -1 for fresh
  std::vector<std::int32_t> views;
};

struct Functionalized {
  ir::Graph graph;
  std::vector<std::string> kept;  // names of nodes whose writes stay as they are, with why
  std::vector<ir::ValueId> written;  // inputs and constants whose memory is written, directly or through a view
};

/// `alias[i]` belongs to graph.nodes[i]. In-place targets are renamed through the table ("aten.add_.Tensor" ->
/// "aten.add.Tensor") when a row names the functional form.
Functionalized functionalize(const ir::Graph& graph, const std::vector<AliasInfo>& alias, const ir::OpTable& table);

}  // namespace fxfuser::partitioner
