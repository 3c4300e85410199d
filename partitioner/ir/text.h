#pragma once
// Text form of a graph: what scenes, goldens and dumps are written in. print(parse(t)) == t for printed text.
//
//   graph name
//   %x: float32[8, 16]@cpu = input
//   %s: float32[8, 16]@cuda:0 strides=[1, 8] = input
//   %n: scalar = input
//   %w: float32[16]@cpu = constant "layer.weight"
//   %y: float32[8, 16]@cpu = aten.add.Tensor(%x, %w, 1)  # file.py:12
//   %max.0: float32[8]@cpu, %max.1: int64[8]@cpu = aten.max.dim(%y, 1, False) {after=[0]}
//   %m: scalar = scalar operator.add(%n, 1)
//   %c: ? = callable user.fn(opaque("fn"), [1, 2.5, None])
//   = aten._assert_async.default(%y) {name=check}
//   return %y, None
//   write %x <- %y
//
// A value is `tensor meta`, `?` (a tensor of unknown meta), `scalar` or `other`. Strides are left out where contiguous.
// Arguments: None, True, False, 3, 2.5, inf, nan, complex(1.0, 2.0), "text", float32 (a dtype), @cuda:0 (a device),
// layout.strided, memory_format.channels_last, opaque("text"), %value, [lists]. `fxf.<op>` targets are canonical. A node is
// named as its one output, or what its outputs `name.0`, `name.1`, ... share; where that is not so, {name=...} says it;
// {after=[...]} holds ordering edges as node numbers. Blank lines and lines of a comment are skipped. A node's origin is not
// in the text: parsed nodes get their own number.

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
