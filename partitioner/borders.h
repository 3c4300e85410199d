#pragma once
// Inputs and outputs of many partitions of one graph: what escapes the graph is looked up once, so the whole is linear.

#include <cstdint>
#include <vector>

#include "partitioner/partition.h"
#include "partitioner/phase.h"

namespace fxfuser::partitioner {

class Borders {
 public:
  Borders(const ir::Graph& graph, const Users& users);
  /// Sets partition.inputs and partition.outputs from partition.nodes (ascending).
  void set(Partition& partition);
  bool escapes(ir::ValueId value) const { return escapes_[value]; }

 private:
  const ir::Graph& graph_;
  const Users& users_;
  std::vector<bool> escapes_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t mark_ = 0;
};

}  // namespace fxfuser::partitioner
