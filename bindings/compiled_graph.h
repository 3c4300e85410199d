#pragma once
// fxfuser.CompiledGraph: a GraphModule with its options bound, called by vectorcall.

#include <pybind11/pybind11.h>

namespace fxfuser::bindings {

void bind_compiled_graph(pybind11::module_& module);

}  // namespace fxfuser::bindings
