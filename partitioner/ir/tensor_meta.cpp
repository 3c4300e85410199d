#include "partitioner/ir/tensor_meta.h"

#include <algorithm>
#include <numeric>

#include "partitioner/ir/error.h"

#include <fmt/ranges.h>

namespace fxfuser::ir {

std::int64_t TensorMeta::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Sizes contiguous_strides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<std::int64_t>(sizes[d], 1);
  return strides;
}

TensorMeta contiguous(DType dtype, Device device, Sizes sizes) {
  Sizes strides = contiguous_strides(sizes);
  return {dtype, device, std::move(sizes), std::move(strides)};
}

bool is_contiguous(const TensorMeta& meta) {
  if (meta.numel() == 0) return true;
  std::int64_t expected = 1;
  for (std::size_t d = meta.sizes.size(); d-- > 0;) {
    if (meta.sizes[d] == 1) continue;
    if (meta.strides[d] != expected) return false;
    expected *= meta.sizes[d];
  }
  return true;
}

bool is_non_overlapping_and_dense(const TensorMeta& meta) {
  if (meta.numel() == 0) return true;
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] != 1) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return meta.strides[a] < meta.strides[b]; });
  std::int64_t expected = 1;
  for (std::size_t d : order) {
    if (meta.strides[d] != expected) return false;
    expected *= meta.sizes[d];
  }
  return true;
}

std::string to_string(const Device& device) {
  const char* kind = device.kind == DeviceKind::Cpu    ? "cpu"
                     : device.kind == DeviceKind::Cuda ? "cuda"
                     : device.kind == DeviceKind::Meta ? "meta"
                                                       : "other";
  return device.index < 0 ? std::string(kind) : fmt::format("{}:{}", kind, device.index);
}

std::string to_string(const TensorMeta& meta) {
  std::string text = fmt::format("{}[{}]@{}", name(meta.dtype), fmt::join(meta.sizes, ", "), to_string(meta.device));
  if (meta.strides != contiguous_strides(meta.sizes)) text += fmt::format(" strides=[{}]", fmt::join(meta.strides, ", "));
  return text;
}

Sizes broadcast_shapes(const Sizes& a, const Sizes& b) {
  const Sizes& longer = a.size() >= b.size() ? a : b;
  const Sizes& shorter = a.size() >= b.size() ? b : a;
  Sizes out = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t d = 0; d < shorter.size(); ++d) {
    std::int64_t& size = out[d + shift];
    if (size == 1) {
      size = shorter[d];
    } else {
      FXF_CHECK(shorter[d] == 1 || shorter[d] == size, Value, "shapes [{}] and [{}] don't broadcast", fmt::join(a, ", "),
                fmt::join(b, ", "));
    }
  }
  return out;
}

}  // namespace fxfuser::ir
