#pragma once
// The forms of define_tensor, as of 2022 and later, as one record.

#include <pybind11/pybind11.h>

#include "executor/frontend/record.h"

namespace fxfuser::bindings {

namespace py = pybind11;

/// (ndims, dtype, is_cpu), (symbolic_sizes, contiguous, ...), (sizes, strides, ...) or (shape, contiguity, ...). A list of bool (or
/// None) selects contiguity where two lists come by position. Throws Error(Type) for a form that it does not know, Error(Runtime) for
/// lengths or sizes that make no sense.
frontend::TensorRecord read_tensor_definition(const py::args& args, const py::kwargs& kwargs);

/// What a tensor is, for define_tensor: sizes other than 1 are symbolic unless `static_sizes`.
frontend::TensorRecord describe_tensor(py::handle tensor, bool static_sizes);

/// By dim: True where its stride is the stride of the next dim times that dim's size; the last one where it is 1.
std::vector<bool> compute_contiguity(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides);

}  // namespace fxfuser::bindings
