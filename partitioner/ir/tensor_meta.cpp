#include "partitioner/ir/tensor_meta.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "partitioner/ir/error.h"

namespace fxfuser::ir {

std::int64_t TensorMeta::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Sizes contiguous_strides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  std::int64_t next = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = next;
    next *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

Sizes channels_last_strides(const Sizes& sizes) {
  Sizes strides(sizes.size());
  std::int64_t next = 1;
  const auto give = [&](std::size_t dim) {
    strides[dim] = next;
    next *= std::max<std::int64_t>(sizes[dim], 1);
  };
  give(1);
  for (std::size_t i = sizes.size(); i-- > 2;) give(i);
  give(0);
  return strides;
}

TensorMeta contiguous(DType dtype, Device device, Sizes sizes) {
  Sizes strides = contiguous_strides(sizes);
  return {dtype, device, std::move(sizes), std::move(strides)};
}

bool is_contiguous(const TensorMeta& meta) {
  std::int64_t expected = 1;
  for (std::size_t i = meta.sizes.size(); i-- > 0;) {
    if (meta.sizes[i] == 0) return true;  // nothing to lay out
  }
  for (std::size_t i = meta.sizes.size(); i-- > 0;) {
    if (meta.sizes[i] == 1) continue;
    if (meta.strides[i] != expected) return false;
    expected *= meta.sizes[i];
  }
  return true;
}

bool is_non_overlapping_and_dense(const TensorMeta& meta) {
  if (meta.numel() == 0) return true;
  std::vector<std::size_t> dims;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    if (meta.sizes[i] != 1) dims.push_back(i);
  }
  std::sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) { return meta.strides[a] < meta.strides[b]; });
  std::int64_t expected = 1;
  for (const std::size_t dim : dims) {
    if (meta.strides[dim] != expected) return false;
    expected *= meta.sizes[dim];
  }
  return true;
}

std::string memory_order(const TensorMeta& meta) {
  if (is_contiguous(meta) || meta.numel() == 0) return "";
  std::vector<std::size_t> dims;
  for (std::size_t dim = 0; dim < meta.sizes.size(); ++dim) {
    if (meta.sizes[dim] != 1) dims.push_back(dim);
  }
  std::stable_sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) { return meta.strides[a] > meta.strides[b]; });
  std::string order;
  for (const std::size_t dim : dims) order += meta.strides[dim] == 0 ? "_" : fmt::format("{}", dim);
  return is_non_overlapping_and_dense(meta) ? order : order + "+";
}

std::string to_string(const Device& device) {
  std::string text;
  switch (device.kind) {
    case DeviceKind::Cpu: text = "cpu"; break;
    case DeviceKind::Cuda: text = "cuda"; break;
    case DeviceKind::Meta: text = "meta"; break;
    case DeviceKind::Other: text = "other"; break;
  }
  if (device.index >= 0) text += fmt::format(":{}", device.index);
  return text;
}

std::string to_string(const TensorMeta& meta) {
  std::string text = fmt::format("{}[{}]@{}", name(meta.dtype), fmt::join(meta.sizes, ", "), to_string(meta.device));
  if (meta.strides != contiguous_strides(meta.sizes)) text += fmt::format(" strides=[{}]", fmt::join(meta.strides, ", "));
  return text;
}

Sizes broadcast_shapes(const Sizes& a, const Sizes& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Sizes result(rank);
  for (std::size_t i = 0; i < rank; ++i) {  // i counts from the right
    const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    FXF_CHECK(left == right || left == 1 || right == 1, Value, "shapes [{}] and [{}] can't be broadcast together",
              fmt::join(a, ", "), fmt::join(b, ", "));
    result[rank - 1 - i] = left == 1 ? right : left;
  }
  return result;
}

}  // namespace fxfuser::ir
