// PyTorch's result types over operands of three categories (tensors with dims, 0-dim tensors, numbers), and the strides that
// an elementwise result gets.

#include <algorithm>
#include <numeric>

#include "partitioner/ir/error.h"
#include "partitioner/ir/infer.h"

namespace fxfuser::ir {
namespace {

using MaybeDType = std::optional<DType>;

bool is_number_kind(const Graph& graph, const Attr& operand) {
  return !operand.is_value() || graph.value(operand.value()).kind != ValueKind::Tensor;
}

DType number_dtype(const Graph& graph, const Attr& operand) {
  if (operand.is_value()) {
    const auto& meta = graph.value(operand.value()).meta;
    FXF_ASSERT(meta.has_value(), "the number {} has no dtype", graph.value(operand.value()).name);
    return meta->dtype == DType::Float64 ? DType::Float32 : meta->dtype;
  }
  if (std::holds_alternative<bool>(operand.v)) return DType::Bool;
  if (std::holds_alternative<std::int64_t>(operand.v)) return DType::Int64;
  if (std::holds_alternative<double>(operand.v)) return DType::Float32;
  FXF_CHECK(operand.is_number(), Type, "an operand is neither a tensor nor a number");
  return DType::Complex64;
}

MaybeDType promoted(MaybeDType a, MaybeDType b) {
  if (!a) return b;
  return b ? promote(*a, *b) : a;
}

/// The higher category decides unless the lower one is of a higher kind (bool < integer < float < complex).
MaybeDType combine(MaybeDType higher, MaybeDType lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_floating(*higher)) return is_complex(*lower) ? promote(*higher, DType::Complex64) : *higher;
  if (*higher == DType::Bool || is_floating(*lower) || is_complex(*lower)) return promote(*higher, *lower);
  return higher;
}

/// The operand's strides as broadcast to `sizes`.
Sizes broadcast_strides(const TensorMeta& meta, const Sizes& sizes) {
  Sizes out(sizes.size(), 0);
  const std::size_t shift = sizes.size() - meta.sizes.size();
  for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
    out[d + shift] = meta.sizes[d] == 1 && sizes[d + shift] != 1 ? 0 : meta.strides[d];
  }
  return out;
}

/// The dims of a channels-last tensor from the fastest: channels, then space from the last, then the batch.
std::vector<std::size_t> channels_last_order(std::size_t rank) {
  std::vector<std::size_t> order{1};
  for (std::size_t d = rank; d-- > 2;) order.push_back(d);
  order.push_back(0);
  return order;
}

bool is_channels_last(const TensorMeta& meta) {
  const std::size_t rank = meta.sizes.size();
  if (rank != 4 && rank != 5) return false;
  std::int64_t expected = 1;
  for (std::size_t d : channels_last_order(rank)) {
    if (meta.sizes[d] == 1) continue;
    if (meta.strides[d] != expected) return false;
    expected *= meta.sizes[d];
  }
  return true;
}

/// Strides that grow in channels-last order, gaps allowed. Where sizes of 1 leave the order open, it is contiguous.
bool grows_as_channels_last(const TensorMeta& meta) {
  const std::size_t rank = meta.sizes.size();
  if ((rank != 4 && rank != 5) || meta.strides[1] == 0) return false;
  std::int64_t least = 0;
  for (std::size_t d : channels_last_order(rank)) {
    if (meta.sizes[d] == 0 || meta.strides[d] < least || (d == 0 && least == meta.strides[1])) return false;
    least = meta.strides[d] * meta.sizes[d];
  }
  return true;
}

/// TensorIterator's short cuts for operands that all have the result's shape.
std::optional<Sizes> uniform_strides(const Sizes& sizes, const std::vector<const TensorMeta*>& operands) {
  const auto all = [&](auto&& holds) { return std::all_of(operands.begin(), operands.end(), [&](const TensorMeta* meta) { return holds(*meta); }); };
  if (operands.empty() || !all([&](const TensorMeta& meta) { return meta.sizes == sizes; })) return std::nullopt;
  if (all([](const TensorMeta& meta) { return is_contiguous(meta); })) return contiguous_strides(sizes);
  if (all([](const TensorMeta& meta) { return is_channels_last(meta); })) return channels_last_strides(sizes);
  const Sizes& first = operands[0]->strides;
  if (all([&](const TensorMeta& meta) { return meta.strides == first && is_non_overlapping_and_dense(meta); })) return first;
  return std::nullopt;
}

}  // namespace

DType promote_operands(const Graph& graph, const std::vector<Attr>& operands) {
  MaybeDType dims, zero, number;
  for (const Attr& operand : operands) {
    if (operand.is_none()) continue;
    if (is_number_kind(graph, operand)) {
      number = promoted(number, number_dtype(graph, operand));
    } else {
      const TensorMeta& meta = graph.meta(operand.value());
      MaybeDType& slot = meta.sizes.empty() ? zero : dims;
      slot = promoted(slot, meta.dtype);
    }
  }
  const MaybeDType result = combine(dims, combine(zero, number));
  FXF_ASSERT(result.has_value(), "nothing to promote");
  return *result;
}

Sizes memory_format_strides(const TensorMeta& meta) { return grows_as_channels_last(meta) ? channels_last_strides(meta.sizes) : contiguous_strides(meta.sizes); }

Sizes iterator_strides(const Sizes& sizes, const std::vector<const TensorMeta*>& operands) {
  if (auto uniform = uniform_strides(sizes, operands)) return *uniform;
  std::vector<Sizes> strides;
  for (const TensorMeta* meta : operands) strides.push_back(broadcast_strides(*meta, sizes));
  // Dims from the fastest; a pair is ordered by the first operand in which neither is broadcast.
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  const auto compare = [&](std::size_t a, std::size_t b) {
    for (const Sizes& operand : strides) {
      if (operand[a] == 0 || operand[b] == 0) continue;
      if (operand[a] != operand[b]) return operand[a] < operand[b] ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t at = i;
    for (std::size_t before = i; before-- > 0;) {
      const int verdict = compare(order[before], order[at]);
      if (verdict < 0) break;
      if (verdict > 0) {
        std::swap(order[before], order[at]);
        at = before;
      }
    }
  }
  Sizes out(sizes.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t d : order) {
    out[d] = stride;
    stride *= sizes[d];
  }
  bool plain = true;
  for (std::size_t i = 0; i < order.size(); ++i) plain = plain && order[i] == order.size() - 1 - i;
  return plain ? contiguous_strides(sizes) : out;
}

}  // namespace fxfuser::ir
