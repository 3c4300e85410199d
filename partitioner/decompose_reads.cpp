// Reads by position and by index, and factories.

#include <cmath>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/infer_view.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

Values cat(B& b) { return {b.call("cat", {b.arg("tensors"), b.arg("dim")})}; }

Values stack(B& b) {
  ir::AttrList pieces;
  const ir::AttrList tensors = b.arg("tensors").list();
  const std::size_t rank = b.meta(tensors.at(0).value()).sizes.size();
  const std::size_t dim = b.dim("dim", rank + 1);
  for (const Attr& tensor : tensors) {
    Sizes sizes = b.meta(tensor.value()).sizes;
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), 1);
    pieces.push_back(b.ref(b.reshape(tensor.value(), sizes)));
  }
  return {b.call("cat", {pieces, static_cast<std::int64_t>(dim)})};
}

/// Widths come last dim first in (before, after) pairs; a negative one crops.
Values constant_pad(B& b) {
  ValueId self = b.tensor("self");
  const Sizes pad = b.arg("pad").as_sizes();
  const std::size_t rank = b.meta(self).sizes.size();
  Sizes widths(2 * rank, 0);
  for (std::size_t i = 0; 2 * i + 1 < pad.size(); ++i) {
    const std::size_t dim = rank - 1 - i;
    const std::int64_t before = pad[2 * i], after = pad[2 * i + 1];
    if (before < 0 || after < 0) self = b.slice(self, dim, std::max<std::int64_t>(-before, 0), b.meta(self).sizes[dim] + std::min<std::int64_t>(after, 0));
    widths[2 * dim] = std::max<std::int64_t>(before, 0);
    widths[2 * dim + 1] = std::max<std::int64_t>(after, 0);
  }
  const Attr value = b.has("value") ? b.arg("value") : Attr(0.0);
  return {b.call("pad", {b.ref(self), list_attr(widths), value})};
}

Values roll(B& b) {
  ValueId self = b.tensor("self");
  const Sizes before = b.meta(self).sizes;
  const Sizes shifts = b.arg("shifts").as_sizes();
  Sizes dims = b.arg("dims").as_sizes();
  if (dims.empty()) {
    self = b.reshape(self, {b.meta(self).numel()});
    dims = {0};
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t dim = ir::wrap_dim(dims[i], b.meta(self).sizes.size());
    const std::int64_t size = b.meta(self).sizes.at(dim);
    if (size == 0) continue;
    const std::int64_t shift = ((shifts.at(i) % size) + size) % size;
    if (shift == 0) continue;
    const ir::AttrList pieces{b.ref(b.slice(self, dim, size - shift, size)), b.ref(b.slice(self, dim, 0, size - shift))};
    self = b.call("cat", {pieces, static_cast<std::int64_t>(dim)});
  }
  return {b.reshape(self, before)};
}

/// Keeps what lies on the wanted side of a diagonal of the last two dims.
Values triangle(B& b, std::string_view keep) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  const std::size_t rank = meta.sizes.size();
  FXF_CHECK(rank >= 2, Value, "{}: a triangle of rank {}", b.node().name, rank);
  const Sizes plane(meta.sizes.end() - 2, meta.sizes.end());
  const ValueId row = b.index(plane, 0, DType::Int64, meta.device), column = b.index(plane, 1, DType::Int64, meta.device);
  const ValueId holds = b.binary(keep, b.ref(b.sub(column, b.ref(row))), b.integer("diagonal", 0));
  const Attr zero = ir::is_floating(meta.dtype) ? Attr(0.0) : meta.dtype == DType::Bool ? Attr(false) : Attr(std::int64_t{0});
  return {b.cast(b.where(holds, b.ref(self), zero), meta.dtype)};
}

Values tril(B& b) { return triangle(b, "le"); }
Values triu(B& b) { return triangle(b, "ge"); }

Values gather(B& b) {
  FXF_CHECK(!b.meta(b.tensor("self")).sizes.empty() && !b.meta(b.tensor("index")).sizes.empty(), NotImplemented, "{}: 0-dim operands", b.node().name);
  const ValueId self = b.tensor("self");
  return {b.gather(self, b.tensor("index"), b.dim("dim", b.meta(self).sizes.size()))};
}

Values index_select(B& b) {
  FXF_CHECK(!b.meta(b.tensor("self")).sizes.empty(), NotImplemented, "{}: a 0-dim source", b.node().name);
  const ValueId index = b.tensor("index");
  const ValueId line = b.reshape(index, {b.meta(index).numel()});
  return {b.call("index_read", {b.arg("self"), b.ref(line), b.arg("dim"), "select"})};
}

Values embedding(B& b) { return {b.call("index_read", {b.arg("weight"), b.arg("indices"), std::int64_t{0}, "select"})}; }

Values index_one(B& b) {
  const ir::AttrList& indices = b.arg("indices").list();
  for (std::size_t dim = 0; dim < indices.size(); ++dim) {
    if (indices[dim].is_none()) continue;
    return {b.call("index_read", {b.arg("self"), indices[dim], static_cast<std::int64_t>(dim), "select"})};
  }
  throw_error(ErrorKind::NotImplemented, b.node().name + ": no index");
}

DType dtype_or(B& b, DType fallback) {
  const auto* dtype = std::get_if<DType>(&b.arg("dtype").v);
  return dtype == nullptr ? fallback : *dtype;
}

ir::Device device_or(B& b, ir::Device fallback) {
  const auto* device = std::get_if<ir::Device>(&b.arg("device").v);
  return device == nullptr ? fallback : *device;
}

DType number_dtype(const Attr& number) {
  return std::holds_alternative<double>(number.v) ? DType::Float32 : std::holds_alternative<bool>(number.v) ? DType::Bool : DType::Int64;
}

Values zeros(B& b) { return {b.full(b.arg("shape").as_sizes(), 0.0, dtype_or(b, DType::Float32), device_or(b, {}))}; }
Values ones(B& b) { return {b.full(b.arg("shape").as_sizes(), 1.0, dtype_or(b, DType::Float32), device_or(b, {}))}; }

Values like(B& b, const Attr& value) {
  const ir::TensorMeta meta = b.meta(b.tensor("self"));
  return {b.full(meta.sizes, value, dtype_or(b, meta.dtype), meta.device)};
}
Values full_like(B& b) { return like(b, b.arg("value")); }
Values zeros_like(B& b) { return like(b, 0.0); }
Values ones_like(B& b) { return like(b, 1.0); }

Values fresh(B& b, const Attr& value) {
  const ir::TensorMeta meta = b.meta(b.tensor("self"));
  return {b.full(b.arg("shape").as_sizes(), value, dtype_or(b, meta.dtype), meta.device)};
}
Values new_full(B& b) { return fresh(b, b.arg("value")); }
Values new_zeros(B& b) { return fresh(b, 0.0); }
Values new_ones(B& b) { return fresh(b, 1.0); }

Values scalar_tensor(B& b) {
  const Attr& value = b.arg("value");
  return {b.full({}, value, dtype_or(b, value.is_number() ? number_dtype(value) : DType::Float32), device_or(b, {}))};
}

Values arange(B& b) {
  const std::int64_t start = b.integer("start", 0), end = b.integer("end", 0), step = b.integer("step", 1);
  FXF_CHECK(step != 0, Value, "{}: a step of 0", b.node().name);
  const std::int64_t length = std::max<std::int64_t>((end - start + step + (step > 0 ? -1 : 1)) / step, 0);
  const DType dtype = dtype_or(b, DType::Int64);
  ValueId out = b.index({length}, 0, DType::Int64, device_or(b, {}));
  if (step != 1) out = b.mul(out, step);
  if (start != 0) out = b.add(out, start);
  return {b.cast(out, dtype)};
}

}  // namespace

const DecompositionTable& read_decompositions() {
  static const DecompositionTable table = {{"cat", cat},
                                           {"stack", stack},
                                           {"constant_pad", constant_pad},
                                           {"roll", roll},
                                           {"tril", tril},
                                           {"triu", triu},
                                           {"gather", gather},
                                           {"index_select", index_select},
                                           {"embedding", embedding},
                                           {"index_one", index_one},
                                           {"zeros", zeros},
                                           {"ones", ones},
                                           {"full_like", full_like},
                                           {"zeros_like", zeros_like},
                                           {"ones_like", ones_like},
                                           {"new_full", new_full},
                                           {"new_zeros", new_zeros},
                                           {"new_ones", new_ones},
                                           {"scalar_tensor", scalar_tensor},
                                           {"arange", arange}};
  return table;
}

}  // namespace fxfuser::partitioner
