#pragma once
// fxfuser.execute as a C function (fast call): guards, arguments and results, nothing else.

#include <pybind11/pybind11.h>

namespace fxfuser::bindings {

void bind_execute(pybind11::module_& module);
/// Turns fxfuser::Error into the Python exception of its kind.
void register_errors();

}  // namespace fxfuser::bindings
