// ATen's views in terms of the five primitives.

#include <algorithm>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/infer_view.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

Values swapped(B& b, std::size_t first, std::size_t second) {
  const ValueId self = b.tensor("self");
  Sizes dims = all_dims(b.meta(self).sizes.size());
  if (dims.empty()) return {b.reshape(self, {})};
  std::swap(dims[first], dims[second]);
  return {b.permute(self, dims)};
}

Values transpose(B& b) {
  const std::size_t rank = b.meta(b.tensor("self")).sizes.size();
  return swapped(b, b.dim("dim0", rank), b.dim("dim1", rank));
}

Values t(B& b) {
  const ValueId self = b.tensor("self");
  Sizes dims = all_dims(b.meta(self).sizes.size());
  std::reverse(dims.begin(), dims.end());
  return {b.permute(self, dims)};
}

Values matrix_t(B& b) {
  const std::size_t rank = b.meta(b.tensor("self")).sizes.size();
  FXF_CHECK(rank >= 2, Value, "{}: a matrix transpose of rank {}", b.node().name, rank);
  return swapped(b, rank - 2, rank - 1);
}

Values movedim(B& b) {
  const ValueId self = b.tensor("self");
  const std::size_t rank = b.meta(self).sizes.size();
  const Sizes source = b.arg("source").as_sizes(), destination = b.arg("destination").as_sizes();
  Sizes order(rank, -1);
  std::vector<bool> moved(rank, false);
  for (std::size_t i = 0; i < source.size(); ++i) {
    order[ir::wrap_dim(destination[i], rank)] = static_cast<std::int64_t>(ir::wrap_dim(source[i], rank));
    moved[ir::wrap_dim(source[i], rank)] = true;
  }
  std::size_t next = 0;
  for (std::int64_t& dim : order) {
    if (dim >= 0) continue;
    while (moved[next]) ++next;
    dim = static_cast<std::int64_t>(next++);
  }
  return {b.permute(self, order)};
}

/// A reshape that drops or adds size-1 dims, with the strides that eager's own view has.
ValueId with_strides(B& b, ValueId self, const Sizes& sizes, const Sizes& strides) {
  if (b.meta(self).sizes == sizes) return self;
  const ValueId out = b.reshape(self, sizes);
  b.graph().values[out].meta->strides = strides;
  return out;
}

Values unsqueeze(B& b) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  const std::size_t dim = b.dim("dim", meta.sizes.size() + 1);
  Sizes sizes = meta.sizes, strides = meta.strides;
  const std::int64_t stride = dim >= sizes.size() ? 1 : sizes[dim] * strides[dim];
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(dim), stride);
  return {with_strides(b, self, sizes, strides)};
}

Values squeeze(B& b) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  std::vector<bool> chosen(meta.sizes.size(), !b.has("dims"));
  for (std::int64_t dim : b.arg("dims").as_sizes()) {
    const std::size_t at = ir::wrap_dim(dim, meta.sizes.size());
    if (!meta.sizes.empty()) chosen[at] = true;
  }
  Sizes sizes, strides;
  for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
    if (chosen[d] && meta.sizes[d] == 1) continue;
    sizes.push_back(meta.sizes[d]);
    strides.push_back(meta.strides[d]);
  }
  return {with_strides(b, self, sizes, strides)};
}

Values flatten(B& b) {
  const ValueId self = b.tensor("self");
  const Sizes& from = b.meta(self).sizes;
  if (from.empty()) return {b.reshape(self, {1})};
  const std::size_t start = b.dim("start_dim", from.size());
  const auto end = b.has("end_dim") ? b.dim("end_dim", from.size()) : from.size() - 1;
  Sizes sizes(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(start));
  std::int64_t merged = 1;
  for (std::size_t d = start; d <= end; ++d) merged *= from[d];
  sizes.push_back(merged);
  sizes.insert(sizes.end(), from.begin() + static_cast<std::ptrdiff_t>(end) + 1, from.end());
  return {b.reshape(self, sizes)};
}

Values unflatten(B& b) {
  const ValueId self = b.tensor("self");
  const Sizes& from = b.meta(self).sizes;
  const std::size_t dim = b.dim("dim", from.size());
  const Sizes inner = ir::resolve_shape(from.at(dim), b.arg("sizes").as_sizes());
  Sizes sizes(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(dim));
  sizes.insert(sizes.end(), inner.begin(), inner.end());
  sizes.insert(sizes.end(), from.begin() + static_cast<std::ptrdiff_t>(dim) + 1, from.end());
  return {b.reshape(self, sizes)};
}

Values expand_as(B& b) { return {b.expand(b.tensor("self"), Sizes(b.meta(b.tensor("other")).sizes))}; }
Values view_as(B& b) { return {b.reshape(b.tensor("self"), Sizes(b.meta(b.tensor("other")).sizes))}; }

Values broadcast_in_dim(B& b) {
  const ValueId self = b.tensor("self");
  const Sizes shape = b.arg("shape").as_sizes(), dims = b.arg("dims").as_sizes();
  Sizes middle(shape.size(), 1);
  for (std::size_t d = 0; d < dims.size(); ++d) middle.at(static_cast<std::size_t>(dims[d])) = b.meta(self).sizes.at(d);
  return {b.expand(b.reshape(self, middle), shape)};
}

Values select(B& b) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  const std::size_t dim = b.dim("dim", meta.sizes.size());
  std::int64_t index = b.integer("index", 0);
  const std::int64_t size = meta.sizes.at(dim);
  FXF_CHECK(index >= -size && index < size, Value, "{}: index {} is out of range for size {}", b.node().name, index, size);
  if (index < 0) index += size;
  const ValueId piece = b.slice(self, dim, index, index + 1);
  Sizes sizes = meta.sizes, strides = meta.strides;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  return {with_strides(b, piece, sizes, strides)};
}

Values narrow(B& b) {
  const ValueId self = b.tensor("self");
  const std::size_t dim = b.dim("dim", b.meta(self).sizes.size());
  std::int64_t start = b.integer("start", 0);
  if (start < 0) start += b.meta(self).sizes.at(dim);
  return {b.slice(self, dim, start, start + b.integer("length", 0))};
}

Values pieces(B& b, std::size_t dim, const Sizes& sizes) {
  Values out;
  std::int64_t at = 0;
  const ValueId self = b.tensor("self");
  for (std::int64_t size : sizes) {
    out.push_back(b.slice(self, dim, at, at + size));
    at += size;
  }
  return out;
}

Values even_pieces(B& b, std::size_t dim, std::int64_t size) {
  const std::int64_t total = b.meta(b.tensor("self")).sizes.at(dim);
  FXF_CHECK(size > 0, Value, "{}: pieces of size {}", b.node().name, size);
  Sizes sizes;
  for (std::int64_t at = 0; at < total; at += size) sizes.push_back(std::min(size, total - at));
  if (sizes.empty()) sizes.push_back(0);
  return pieces(b, dim, sizes);
}

Values split(B& b) { return even_pieces(b, b.dim("dim", b.meta(b.tensor("self")).sizes.size()), b.integer("size", 1)); }
Values split_with_sizes(B& b) { return pieces(b, b.dim("dim", b.meta(b.tensor("self")).sizes.size()), b.arg("sizes").as_sizes()); }

Values chunk(B& b) {
  const std::size_t dim = b.dim("dim", b.meta(b.tensor("self")).sizes.size());
  const std::int64_t count = b.integer("chunks", 1), total = b.meta(b.tensor("self")).sizes.at(dim);
  return even_pieces(b, dim, std::max<std::int64_t>((total + count - 1) / count, 1));
}

Values unbind(B& b) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  const std::size_t dim = b.dim("dim", meta.sizes.size());
  Sizes sizes = meta.sizes, strides = meta.strides;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  Values out;
  for (std::int64_t i = 0; i < meta.sizes[dim]; ++i) out.push_back(with_strides(b, b.slice(self, dim, i, i + 1), sizes, strides));
  return out;
}

Values same(B& b) { return {b.tensor("self")}; }

/// The view of a row `NAME_copy` that copies: the row NAME, on the same arguments.
Values copied_view(B& b) {
  const std::string& op = b.node().row->op;
  std::vector<Attr> args;
  for (const std::string& param : b.node().row->params) args.push_back(b.arg(param));
  return b.calls(op.substr(0, op.size() - std::string_view("_copy").size()), std::move(args));
}

/// A copy: a cast to the same dtype, which simplify never drops when its layout differs.
Values clone(B& b) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  const auto* format = std::get_if<ir::MemoryFormat>(&b.arg("memory_format").v);
  const bool channels_last = format != nullptr && (*format == ir::MemoryFormat::ChannelsLast || *format == ir::MemoryFormat::ChannelsLast3d);
  const bool asked = b.node().row->op == "contiguous";  // returns its input where that has the layout already
  if (asked && !channels_last && ir::is_contiguous(meta)) return {self};
  const ValueId out = b.call("cast", {B::ref(self), meta.dtype});
  ir::TensorMeta& made = *b.graph().values[out].meta;
  if (channels_last) made.strides = ir::channels_last_strides(made.sizes);
  else if (asked || (format != nullptr && *format == ir::MemoryFormat::Contiguous)) made.strides = ir::contiguous_strides(made.sizes);
  return {out};
}

Values dropout_off(B& b) {
  const ValueId self = b.tensor("self");
  if (b.node().row->outputs.size() == 1) return {self};
  const ir::TensorMeta meta = b.meta(self);
  return {self, b.full(meta.sizes, true, DType::Bool, meta.device)};
}

}  // namespace

const DecompositionTable& view_decompositions() {
  static const DecompositionTable table = {
      {"transpose", transpose}, {"t", t},           {"mT", matrix_t},     {"movedim", movedim},     {"unsqueeze", unsqueeze}, {"squeeze", squeeze},
      {"flatten", flatten},     {"unflatten", unflatten}, {"expand_as", expand_as}, {"view_as", view_as}, {"broadcast_in_dim", broadcast_in_dim},
      {"select", select},       {"narrow", narrow}, {"split", split},     {"split_with_sizes", split_with_sizes}, {"chunk", chunk}, {"unbind", unbind},
      {"same", same},           {"copied_view", copied_view}, {"clone", clone},   {"dropout_off", dropout_off}, {"native_dropout_off", dropout_off}};
  return table;
}

}  // namespace fxfuser::partitioner
