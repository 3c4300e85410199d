#pragma once
// Inputs and results of a call between Python and the plan.

#include <ATen/core/ivalue.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace fxfuser::bindings {

namespace py = pybind11;

/// A leaf as the plan takes it; false when only the module itself can take it (subclasses, other objects).
bool to_input(PyObject* object, c10::IValue& out);
py::object to_python(c10::IValue&& value);
/// One Python warning a text, seen from the caller of the function that called us.
void warn(const std::vector<std::string>& texts, PyObject* category);
/// The same with the category FallbackWarning.
void warn_of_fallback(const std::vector<std::string>& texts);

}  // namespace fxfuser::bindings
