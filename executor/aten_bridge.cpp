#include "executor/aten_bridge.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>

#include <array>

#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

constexpr std::array<std::pair<c10::ScalarType, ir::DType>, 14> kTypes{{{c10::ScalarType::Bool, ir::DType::Bool},
                                                                        {c10::ScalarType::Byte, ir::DType::UInt8},
                                                                        {c10::ScalarType::Char, ir::DType::Int8},
                                                                        {c10::ScalarType::Short, ir::DType::Int16},
                                                                        {c10::ScalarType::Int, ir::DType::Int32},
                                                                        {c10::ScalarType::Long, ir::DType::Int64},
                                                                        {c10::ScalarType::Half, ir::DType::Float16},
                                                                        {c10::ScalarType::BFloat16, ir::DType::BFloat16},
                                                                        {c10::ScalarType::Float, ir::DType::Float32},
                                                                        {c10::ScalarType::Double, ir::DType::Float64},
                                                                        {c10::ScalarType::ComplexFloat, ir::DType::Complex64},
                                                                        {c10::ScalarType::ComplexDouble, ir::DType::Complex128},
                                                                        {c10::ScalarType::Float8_e4m3fn, ir::DType::Float8E4M3},
                                                                        {c10::ScalarType::Float8_e5m2, ir::DType::Float8E5M2}}};

}  // namespace

ir::DType to_dtype(c10::ScalarType type) {
  for (const auto& [torch, ours] : kTypes) {
    if (torch == type) return ours;
  }
  return ir::DType::Other;
}

c10::ScalarType to_scalar_type(ir::DType dtype) {
  for (const auto& [torch, ours] : kTypes) {
    if (ours == dtype) return torch;
  }
  throw_error(ErrorKind::Internal, fmt::format("{} has no torch dtype", ir::name(dtype)));
}

ir::Device to_device(const c10::Device& device) {
  ir::Device out;
  out.kind = device.is_cpu()    ? ir::DeviceKind::Cpu
             : device.is_cuda() ? ir::DeviceKind::Cuda
             : device.is_meta() ? ir::DeviceKind::Meta
                                : ir::DeviceKind::Other;
  out.index = out.kind == ir::DeviceKind::Cpu ? std::int16_t{-1} : static_cast<std::int16_t>(device.index());
  return out;
}

c10::Device to_device(const ir::Device& device) {
  const auto index = static_cast<c10::DeviceIndex>(device.index);
  switch (device.kind) {
    case ir::DeviceKind::Cpu: return {c10::DeviceType::CPU};
    case ir::DeviceKind::Cuda: return {c10::DeviceType::CUDA, index};
    case ir::DeviceKind::Meta: return {c10::DeviceType::Meta};
    case ir::DeviceKind::Other: break;
  }
  throw_error(ErrorKind::Internal, "a device that is neither CPU nor CUDA");
}

ir::TensorMeta meta_of(const at::Tensor& tensor) {
  ir::TensorMeta meta;
  meta.dtype = to_dtype(tensor.scalar_type());
  meta.device = to_device(tensor.device());
  meta.sizes = tensor.sizes().vec();
  meta.strides = tensor.strides().vec();
  return meta;
}

bool has_meta(const at::Tensor& tensor, const ir::TensorMeta& meta) {
  return tensor.defined() && tensor.sizes().equals(meta.sizes) && tensor.strides().equals(meta.strides) &&
         to_dtype(tensor.scalar_type()) == meta.dtype && to_device(tensor.device()) == meta.device;
}

int alignment_of(const at::Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  return address == 0 ? 16 : static_cast<int>(std::min<std::uintptr_t>(address & (~address + 1), 16));
}

std::int64_t storage_bytes(const ir::TensorMeta& meta) {
  return static_cast<std::int64_t>(at::detail::computeStorageNbytes(meta.sizes, meta.strides, static_cast<std::size_t>(ir::itemsize(meta.dtype))));
}

at::Tensor allocate(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, const c10::Device& device) {
  // Without the dispatcher: no mode that could take part is active in a plan, and what is allocated here is written in full.
  if (device.is_cpu()) return at::detail::empty_strided_cpu(sizes, strides, dtype);
  if (!device.is_cuda()) return at::empty_strided(sizes, strides, at::TensorOptions().dtype(dtype).device(device));
  const c10::DeviceGuard guard(device);
  return at::detail::empty_strided_generic(sizes, strides, c10::GetAllocator(c10::DeviceType::CUDA), c10::DispatchKeySet(c10::DispatchKey::CUDA), dtype);
}

at::Tensor allocate_within(const at::Tensor& block, std::int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  const c10::DispatchKey key = block.is_cuda() ? c10::DispatchKey::CUDA : c10::DispatchKey::CPU;
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(block.storage()), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset / static_cast<std::int64_t>(c10::elementSize(dtype)));
  return tensor;
}

}  // namespace fxfuser::executor
