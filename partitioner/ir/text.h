#pragma once
// Text form of a graph: what scenes, goldens and dumps are written in. print(parse(t)) == t for printed text.
//
//   graph name
//   %x: float32[8, 16]@cpu = input
//   %w: float32[16]@cpu = constant "layer.weight"
//   %y: float32[8, 16]@cpu = aten.add.Tensor(%x, %w, 1)  # file.py:12
//   return %y, None

#include <string>
#include <string_view>

#include "partitioner/ir/graph.h"

namespace fxfuser::ir {

class OpTable;

std::string print(const Graph& graph);
std::string print(const Attr& attr, const Graph* graph = nullptr);
/// Parses the text form and binds rows from `table` (targets "fxf.<op>" are canonical). Throws Error(Value) with the line.
Graph parse_graph(std::string_view text, const OpTable& table);
/// Checks the invariants (ids in range, topological order, arity against the row); throws Error(Value) naming the node.
void verify(const Graph& graph);

}  // namespace fxfuser::ir
