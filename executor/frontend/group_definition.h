#pragma once
// A group of a traced graph as a definition that computes the same: one op of `fd.ops` a node, found through the rows that both
// sides share. For print: what a user may copy, change and run.

#include <string>
#include <vector>

#include "executor/frontend/record.h"
#include "executor/frontend/signature.h"

namespace fxfuser::frontend {

/// Nodes of an imported graph with what they read from outside and what is read of them.
struct Group {
  const ir::Graph& graph;
  const std::vector<ir::NodeId>& nodes;
  const std::vector<ir::ValueId>& inputs;
  const std::vector<ir::ValueId>& outputs;
  const std::vector<ir::TensorMeta>& metas;  // by input, exact
  ir::Device device;
};

/// The records of the definition. Throws Error(Value) naming the node and what it lacks when no op of `fd.ops` says the same.
std::vector<Record> define_group(const OpSource& ops, const Group& group);

/// The definition as Python under the name `function`, a comment with the group's inputs and nodes above it; the comment alone, with the
/// reason, where there is no such definition.
std::string group_text(const OpSource& ops, const Group& group, const std::string& function);

}  // namespace fxfuser::frontend
