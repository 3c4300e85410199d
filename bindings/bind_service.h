#pragma once
// Counters, caches, options and the doctor, as plain functions of fxfuser._C.

#include <pybind11/pybind11.h>

namespace fxfuser::bindings {

void bind_service(pybind11::module_& module);

}  // namespace fxfuser::bindings
