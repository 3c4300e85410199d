#pragma once
// `executor_parameters` as the service takes them, and Python warnings from texts.

#include <pybind11/pybind11.h>

#include <map>
#include <string>
#include <vector>

#include "executor/options.h"
#include "partitioner/ir/graph.h"

namespace fxfuser::bindings {

namespace py = pybind11;

using OptionValues = std::map<std::string, ir::Attr>;

/// A dictionary, the name of a stored one, or None. Throws what fxfuser.parameters.resolve raises.
OptionValues option_values(py::handle parameters);

/// The service's reading of them. Where the library can't be loaded "aten" needs none of it and is not checked any further.
executor::ParsedOptions parse_options(const std::string& executor, const OptionValues& values);

}  // namespace fxfuser::bindings
