#pragma once
// The pieces that segments are made of. A unit is a node that does work; views and factories cost nothing and belong to
// every unit that reads through them, so the values that units exchange ("roots") are never views, except those that must
// be stored as they are.

#include <cstdint>
#include <utility>
#include <vector>

#include "partitioner/ir/graph.h"

namespace fxfuser::codegen {

using UnitId = std::uint32_t;
inline constexpr UnitId kNoUnit = 0xffffffffu;

struct Unit {
  ir::NodeId node = ir::kNoNode;
  std::vector<ir::NodeId> free;    // views and factories between its roots and its operands, ascending
  std::vector<ir::ValueId> reads;  // roots, ascending, each once; tensors only
  std::vector<UnitId> after;       // units that must run before it, beside those it reads from
  std::int64_t space = 1;          // points it is evaluated at
  int slots = 0;                   // issue slots a point
  bool pointwise = false;          // one expression a point: pointwise and cast rows
  bool cheap = false;              // may be computed again by each reader
};

struct Units {
  ir::Graph graph;                                           // the canonical graph with strides on every value
  std::vector<Unit> all;                                     // ascending by node
  std::vector<UnitId> of_node;                               // kNoUnit: free or dead
  std::vector<std::vector<UnitId>> readers;                  // by value: units that read it as a root, ascending
  std::vector<bool> wanted;                                  // by value: an output that must be stored
  std::vector<std::pair<ir::ValueId, ir::ValueId>> aliases;  // outputs that are views of inputs or of wanted values

  std::int64_t bytes(ir::ValueId value) const;
  UnitId producer(ir::ValueId value) const;  // kNoUnit for inputs and constants
};

/// What is stored so that its readers have simpler addresses; both ascending, each once.
struct StoredAsIs {
  std::vector<ir::NodeId> views;   // view nodes that are units of their own, besides those that are outputs; contiguous
  std::vector<ir::ValueId> plain;  // values that are contiguous between two segments, whatever eager's strides
};

Units make_units(const ir::Graph& canonical, const StoredAsIs& stored);

}  // namespace fxfuser::codegen
