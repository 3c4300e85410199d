#pragma once
// Definitions in Python: Fusion, FusionDefinition, FusionCache and what fd.ops holds.

#include <pybind11/pybind11.h>

namespace fxfuser::bindings {

void bind_frontend(pybind11::module_& module);

}  // namespace fxfuser::bindings
