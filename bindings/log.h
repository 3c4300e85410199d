#pragma once
// Lines for Python's logging.

#include <pybind11/pybind11.h>

namespace fxfuser::bindings {

void bind_log(pybind11::module_& module);

}  // namespace fxfuser::bindings
