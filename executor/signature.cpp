#include "executor/signature.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "executor/aten_bridge.h"
#include "executor/call_guards.h"

namespace fxfuser::executor {
namespace {

void sign_tensor(const at::Tensor& tensor, SignatureWords& out) {
  out.push_back(static_cast<std::int64_t>(tensor.key_set().raw_repr()));
  // A device index of -1 (the CPU) is one byte here: sign extension would cover the other fields.
  const auto device = static_cast<std::int64_t>(static_cast<std::uint8_t>(tensor.device().index()));
  out.push_back((static_cast<std::int64_t>(tensor.scalar_type()) << 32) | (device << 24) | (tensor.dim() << 8) | alignment_of(tensor));
  out.append(tensor.sizes().begin(), tensor.sizes().end());
  out.append(tensor.strides().begin(), tensor.strides().end());
}

}  // namespace

bool sign(std::span<const c10::IValue> inputs, SignatureWords& out, std::string& reason) {
  reason = thread_problem();
  if (!reason.empty()) return false;
  const auto local = c10::impl::tls_local_dispatch_key_set();
  out.push_back(static_cast<std::int64_t>(local.included_.raw_repr()));
  out.push_back(static_cast<std::int64_t>(local.excluded_.raw_repr()));
  out.push_back((c10::GradMode::is_enabled() ? 1 : 0) | (c10::InferenceMode::is_enabled() ? 2 : 0));
  for (const c10::IValue& input : inputs) {
    if (input.isTensor()) {
      const at::Tensor& tensor = input.toTensor();
      reason = tensor_problem(tensor);
      if (!reason.empty()) return false;
      sign_tensor(tensor, out);
    } else if (input.isInt()) {
      out.push_back(-1);
      out.push_back(input.toInt());
    } else if (input.isDouble()) {
      out.push_back(-2);  // its value is read at each call
    } else if (input.isBool()) {
      out.push_back(input.toBool() ? -3 : -4);
    } else if (input.isNone()) {
      out.push_back(-5);
    } else {
      reason = "an input that is neither a tensor nor a number";
      return false;
    }
  }
  return true;
}

bool writes_overlap(std::span<const c10::IValue> inputs, const std::vector<std::size_t>& written) {
  const auto range = [](const at::Tensor& tensor) {
    const auto* first = static_cast<const char*>(tensor.const_data_ptr());
    std::int64_t last = 0;
    for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    return std::pair(first, first + (last + 1) * static_cast<std::int64_t>(tensor.element_size()));
  };
  for (std::size_t at : written) {
    if (!inputs[at].isTensor() || inputs[at].toTensor().numel() == 0) continue;
    const at::Tensor& target = inputs[at].toTensor();
    if (!target.is_non_overlapping_and_dense() && at::has_internal_overlap(target) != at::MemOverlap::No) return true;
    for (std::size_t other = 0; other < inputs.size(); ++other) {
      if (other == at || !inputs[other].isTensor()) continue;
      const at::Tensor& tensor = inputs[other].toTensor();
      if (tensor.numel() == 0 || !tensor.has_storage() || !target.is_alias_of(tensor)) continue;
      const auto a = range(target), b = range(tensor);
      if (a.first < b.second && b.first < a.second) return true;
    }
  }
  return false;
}

}  // namespace fxfuser::executor
