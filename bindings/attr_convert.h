#pragma once
// Python objects -> ir::Attr and ir::TensorMeta. The only unit that knows which Python types the closed variant holds.

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <pybind11/pybind11.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "partitioner/ir/graph.h"

namespace fxfuser::bindings {

namespace py = pybind11;

/// What an FX node stands for in the graph under construction.
struct NodeValues {
  std::vector<ir::ValueId> ids;
  bool several = false;  // a tuple or list: used as a whole it becomes a list of values
};
using NodeMap = std::unordered_map<PyObject*, NodeValues>;

/// Converts one argument; `expected` (may be null) is its schema type, used for what becomes Opaque.
ir::Attr to_attr(py::handle object, const NodeMap& nodes, const c10::TypePtr& expected);
/// An argument's default of its schema; None where it has none.
ir::Attr default_of(const c10::Argument& argument);

/// The meta of a (fake or real) tensor; symbolic sizes by their hints. nullopt for layouts and types that no graph value has
/// and for sizes that depend on data.
std::optional<ir::TensorMeta> meta_of(py::handle tensor);
/// What the library calls a torch device type.
ir::Device to_device(const c10::Device& device);

}  // namespace fxfuser::bindings
