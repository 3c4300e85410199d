#pragma once
// Between our types and c10's: dtypes, devices, tensor metas.

#include <ATen/core/Tensor.h>

#include "partitioner/ir/tensor_meta.h"

namespace fxfuser::executor {

ir::DType to_dtype(c10::ScalarType type);
c10::ScalarType to_scalar_type(ir::DType dtype);
ir::Device to_device(const c10::Device& device);
c10::Device to_device(const ir::Device& device);
ir::TensorMeta meta_of(const at::Tensor& tensor);
bool has_meta(const at::Tensor& tensor, const ir::TensorMeta& meta);
/// Bytes that a pointer is aligned to, at most 16.
int alignment_of(const at::Tensor& tensor);
/// Bytes from a tensor's first element to the end of its last.
std::int64_t storage_bytes(const ir::TensorMeta& meta);
/// An uninitialised tensor.
at::Tensor allocate(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, const c10::Device& device);
/// A tensor of its own (no view, with a version of its own) in the memory of `block`, `offset` bytes from its start: a multiple of the dtype's size.
at::Tensor allocate_within(const at::Tensor& block, std::int64_t offset, c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype);

}  // namespace fxfuser::executor
