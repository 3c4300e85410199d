#pragma once
// Builds an ImportedGraph from FX nodes, one call a node: arguments are normalised against the overload's schema here, so
// that Python only walks the nodes.

#include <unordered_map>

#include "bindings/attr_convert.h"
#include "executor/interface/fxfuser.h"

namespace c10 {
struct FunctionSchema;
}

namespace fxfuser::bindings {

class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name);

  void add_placeholder(py::handle node, const std::string& name, py::handle value);
  /// Returns false when the path has come before: both nodes are one value then, so that a write through one is seen by the other.
  bool add_constant(py::handle node, const std::string& path, py::handle value);
  /// An OpOverload. Returns false when its results have a form that only a callable step can hold.
  bool add_op(py::handle node, const std::string& name, py::handle overload, const py::tuple& args, const py::dict& kwargs,
              py::handle value, const std::string& where);
  /// Host arithmetic on numbers: target "operator.add", "torch.sym_max", ...
  void add_scalar(py::handle node, const std::string& name, const std::string& target, const py::tuple& args, const std::string& where);
  /// Anything else: step(list of the values of `inputs`, one entry a node) -> flat list of `outputs` results.
  void add_callable(py::handle node, const std::string& name, const std::string& target, py::object step, const py::list& inputs,
                    std::size_t outputs, bool several, const py::list& metas, const std::string& where);
  /// node = source[index]; false when the index is not one of the source's outputs.
  bool add_getitem(py::handle node, py::handle source, std::int64_t index);
  /// node stands for the tuple of these nodes' values.
  void add_tuple(py::handle node, const py::list& members);
  void set_outputs(const py::list& outputs);
  std::size_t output_count(py::handle node) const;

  ImportedGraph take();

 private:
  void finish_node(py::handle node, ir::Node&& made, std::size_t outputs, bool several, ir::ValueKind kind, py::handle value);

  ImportedGraph imported_;
  NodeMap nodes_;
  std::unordered_map<std::string, ir::ValueId> constants_;  // by path
  std::uint32_t origin_ = 0;
};

void bind_graph_builder(py::module_& module);

}  // namespace fxfuser::bindings
