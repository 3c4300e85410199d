#pragma once
// What is known of a tensor without its data: dtype, device, sizes and strides (in elements).

#include <cstdint>
#include <string>
#include <vector>

#include "partitioner/ir/dtype.h"

namespace fxfuser::ir {

using Sizes = std::vector<std::int64_t>;

enum class DeviceKind : std::uint8_t { Cpu, Cuda, Meta, Other };

struct Device {
  DeviceKind kind = DeviceKind::Cpu;
  std::int16_t index = -1;  // -1: the current one, and always for the CPU
  bool operator==(const Device&) const = default;
};

struct TensorMeta {
  DType dtype = DType::Float32;
  Device device;
  Sizes sizes;
  Sizes strides;  // elements; the same length as sizes
  bool operator==(const TensorMeta&) const = default;

  std::int64_t rank() const { return static_cast<std::int64_t>(sizes.size()); }
  std::int64_t numel() const;
};

/// Row-major strides of these sizes (a size of 0 counts as 1, as in PyTorch).
Sizes contiguous_strides(const Sizes& sizes);
/// The strides of channels-last memory: dim 1 innermost, the others row-major (rank 4 or 5).
Sizes channels_last_strides(const Sizes& sizes);
/// A contiguous meta.
TensorMeta contiguous(DType dtype, Device device, Sizes sizes);
bool is_contiguous(const TensorMeta& meta);
/// True when no two index tuples share an address (no stride 0 on a dim > 1, no overlap).
bool is_non_overlapping_and_dense(const TensorMeta& meta);
/// The order of the dims in memory, outermost first, as text that equal orders share whatever the sizes: "" for contiguous memory, else
/// the dims of more than one element by falling strides ("0231"; those of stride 0 as "_"), with "+" behind where the memory has gaps.
std::string memory_order(const TensorMeta& meta);

std::string to_string(const Device& device);
/// "float32[8, 16]@cpu", with "strides=[...]" when not contiguous.
std::string to_string(const TensorMeta& meta);

/// PyTorch's broadcast of shapes. Throws Error(Value) naming both shapes when they do not match.
Sizes broadcast_shapes(const Sizes& a, const Sizes& b);

}  // namespace fxfuser::ir
