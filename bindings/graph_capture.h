#pragma once
// CUDA graphs are captured by torch.cuda.CUDAGraph, which alone owns their memory pools; the executor replays what it captured.

#include <pybind11/pybind11.h>

namespace fxfuser::bindings {

void bind_graph_capture(pybind11::module_& module);

}  // namespace fxfuser::bindings
