#pragma once
// What runs around or instead of a module's graph: hooks, and a forward of the instance. The one place that says what counts.

#include <pybind11/pybind11.h>

namespace fxfuser::bindings {

namespace py = pybind11;

/// True when the module has a hook that torch.export did not bring (those only check inputs, as the graph's own guards do).
bool has_hooks(PyObject* module);
/// The same of the module that is executed: a forward of its own instance counts as well.
bool has_override(PyObject* root);
/// True when a hook is registered for all modules.
bool has_global_hooks();

void bind_overrides(py::module_& module);

}  // namespace fxfuser::bindings
