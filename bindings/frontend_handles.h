#pragma once
// Handles of a definition as Python objects, and Python arguments as what a definition takes.

#include <pybind11/pybind11.h>

#include "executor/frontend/definition.h"

namespace fxfuser::bindings {

namespace py = pybind11;

struct TensorHandle {
  frontend::Handle handle;
};
struct ScalarHandle {
  frontend::Handle handle;
};

/// A handle as Tensor or Scalar.
py::object wrap_handle(const frontend::Handle& handle);
/// A handle, dtype, number, text, device or a list of them. Throws Error(Type) naming `where`.
frontend::Argument to_argument(py::handle object, const std::string& where);
/// A DataType or a torch.dtype; nullopt for None and DataType.Null.
std::optional<ir::DType> to_data_type(py::handle object);
/// fd.ops.<name>(...): a handle, or a list where the op has several results.
py::object call_op(frontend::FusionDefinition& definition, const std::string& name, const py::tuple& args, const py::dict& kwargs);

void bind_frontend_handles(py::module_& module);

}  // namespace fxfuser::bindings
