#pragma once
// What a plan does not carry: calls in such a state run the module itself.

#include <ATen/core/Tensor.h>

#include <string>

namespace fxfuser::executor {

/// Why a tensor can't enter a plan; empty when it can.
std::string tensor_problem(const at::Tensor& tensor);
/// The same for the state of the calling thread.
std::string thread_problem();

}  // namespace fxfuser::executor
