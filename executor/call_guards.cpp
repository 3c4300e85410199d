#include "executor/call_guards.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace fxfuser::executor {
namespace {

const c10::DispatchKeySet& foreign_keys() {
  static const c10::DispatchKeySet keys({c10::DispatchKey::Python, c10::DispatchKey::Conjugate, c10::DispatchKey::Negative, c10::DispatchKey::ZeroTensor,
                                         c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize,
                                         c10::DispatchKey::MkldnnCPU, c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsr, c10::DispatchKey::Quantized,
                                         c10::DispatchKey::NestedTensor});  // functionalities: without the bit of a backend
  return keys;
}

}  // namespace

std::string tensor_problem(const at::Tensor& tensor) {
  if (!tensor.defined()) return "an undefined tensor";
  if (tensor.key_set().has_any(foreign_keys())) return "an input with dispatch keys that a plan does not carry (" + c10::toString(tensor.key_set()) + ")";
  if (tensor.layout() != c10::Layout::Strided) return "an input that is not strided";
  if (tensor.has_names()) return "an input with named dims";
  if (tensor._fw_grad(0).defined()) return "an input carries a tangent of forward-mode differentiation";
  if (tensor.requires_grad() && c10::GradMode::is_enabled()) {
    return "an input or parameter requires grad while grad mode is on: call it under torch.no_grad() (or torch.inference_mode()) to run it fused";
  }
  return {};
}

std::string thread_problem() {
  if (at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA)) return "autocast is on";
  if (c10::get_default_dtype_as_scalartype() != c10::ScalarType::Float) return "the default dtype is not float32, which graphs are planned for";
  if (c10::impl::dispatch_mode_enabled()) return "a dispatch mode is active";
  if (at::impl::torch_function_mode_enabled()) return "a torch function mode is active";
  return {};
}

}  // namespace fxfuser::executor
