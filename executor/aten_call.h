#pragma once
// One dispatcher call with everything that does not change baked in: the resolved operator, and the arguments turned into
// IValues against the schema once, with holes for values of the frame.

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/ir/graph.h"

namespace fxfuser::executor {

using Slots = std::vector<c10::IValue>;

class AtenCall {
 public:
  /// Resolves an imported node: its own target, or the row's `fallback` overload for prims and nvprims targets where the row
  /// names one. Throws Error(Runtime) when the dispatcher has no such operator.
  static AtenCall resolve(const ir::Graph& graph, const ir::Node& node);
  /// Runs on the values of `slots` (indexed by ValueId) and writes the results to the node's outputs.
  void run(Slots& slots) const;
  const std::string& name() const { return name_; }
  const std::vector<ir::ValueId>& outputs() const { return outputs_; }
  /// Why a captured call must not be replayed (random numbers, sizes that depend on data, writes); empty when it may.
  std::string replay_problem() const;
  /// What it takes in memory beside itself, about.
  std::size_t heap_bytes() const { return name_.capacity() + arguments_.capacity() * sizeof(Argument) + outputs_.capacity() * sizeof(ir::ValueId) + 48; }
  void for_each_input(const std::function<void(ir::ValueId)>& fn) const;

 private:
  struct Argument {
    c10::IValue constant;
    ir::Attr holes;       // set where values are needed
    c10::TypePtr type;
    bool has_holes = false;
  };

  /// The row's ATen overload instead of a prims or nvprims op; nullopt where there is none or it can't take the arguments.
  static std::optional<AtenCall> resolve_fallback(const ir::Node& node);
  static Argument make_argument(const ir::Attr& attr, const c10::Argument& schema);

  explicit AtenCall(c10::OperatorHandle handle) : handle_(std::move(handle)) {}

  c10::OperatorHandle handle_;
  std::string name_;
  std::vector<Argument> arguments_;
  std::vector<ir::ValueId> outputs_;
};


/// An attr as the IValue that a schema type wants; ValueRefs are read from `slots`.
c10::IValue to_ivalue(const ir::Attr& attr, const c10::TypePtr& type, const Slots& slots);

}  // namespace fxfuser::executor
