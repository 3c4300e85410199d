#pragma once
// A Python function as a plan step.

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "executor/interface/fxfuser.h"

namespace fxfuser::bindings {

namespace py = pybind11;

/// step(list) -> flat list of results. `widths`: how many values each list entry takes (0: one that is not a tuple).
std::shared_ptr<HostCallable> make_host_callable(py::object step, std::vector<std::size_t> widths);

}  // namespace fxfuser::bindings
