#include "partitioner/ir/infer_view.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "partitioner/ir/error.h"
#include "partitioner/ir/infer.h"

namespace fxfuser::ir {
namespace {

TensorMeta permute(const TensorMeta& self, const Sizes& dims) {
  FXF_CHECK(dims.size() == self.sizes.size(), Value, "permute of rank {} got {} dims", self.sizes.size(), dims.size());
  TensorMeta out = self;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::size_t from = wrap_dim(dims[d], dims.size());
    out.sizes[d] = self.sizes[from];
    out.strides[d] = self.strides[from];
  }
  return out;
}

TensorMeta expand(const TensorMeta& self, const Sizes& shape) {
  FXF_CHECK(shape.size() >= self.sizes.size(), Value, "expand of [{}] to [{}]: too few dims", fmt::join(self.sizes, ", "), fmt::join(shape, ", "));
  TensorMeta out = self;
  out.sizes = shape;
  out.strides.assign(shape.size(), 0);
  const std::size_t shift = shape.size() - self.sizes.size();
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::int64_t size = d >= shift ? self.sizes[d - shift] : 1;
    std::int64_t stride = d >= shift ? self.strides[d - shift] : d + 1 < shape.size() ? out.sizes[d + 1] * out.strides[d + 1] : 1;
    if (out.sizes[d] == -1) out.sizes[d] = size;
    if (out.sizes[d] != size) {
      FXF_CHECK(size == 1, Value, "expand of [{}] to [{}]: dim {} does not broadcast", fmt::join(self.sizes, ", "), fmt::join(shape, ", "), d);
      stride = 0;
    }
    out.strides[d] = stride;
  }
  return out;
}

TensorMeta slice(const TensorMeta& self, std::size_t dim, const Attr& start_attr, const Attr& end_attr, std::int64_t step) {
  FXF_CHECK(step > 0, Value, "slice step must be positive, is {}", step);
  const std::int64_t size = self.sizes.at(dim);
  std::int64_t start = start_attr.is_none() ? 0 : start_attr.as_int();
  std::int64_t end = end_attr.is_none() ? size : end_attr.as_int();
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<std::int64_t>(start, 0, size);
  end = std::clamp<std::int64_t>(end, start, size);
  TensorMeta out = self;
  out.sizes[dim] = (end - start + step - 1) / step;
  out.strides[dim] *= step;
  return out;
}

TensorMeta reshape(const TensorMeta& self, const Sizes& shape) {
  TensorMeta out = self;
  out.sizes = resolve_shape(self.numel(), shape);
  out.strides = view_strides(self, out.sizes).value_or(contiguous_strides(out.sizes));
  return out;
}

}  // namespace

std::size_t wrap_dim(std::int64_t dim, std::size_t rank) {
  const auto bound = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  FXF_CHECK(dim >= -bound && dim < bound, Value, "dim {} is out of range for rank {}", dim, rank);
  return static_cast<std::size_t>(dim < 0 ? dim + bound : dim);
}

Sizes resolve_shape(std::int64_t numel, Sizes sizes) {
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (std::int64_t& size : sizes) {
    if (size == -1) {
      FXF_CHECK(open == nullptr, Value, "a shape has two -1");
      open = &size;
    } else {
      known *= size;
    }
  }
  if (open != nullptr) {
    FXF_CHECK(known != 0 && numel % known == 0, Value, "a shape does not fit {} elements", numel);
    *open = numel / known;
    known *= *open;
  }
  FXF_CHECK(known == numel, Value, "shape [{}] is invalid for {} elements", fmt::join(sizes, ", "), numel);
  return sizes;
}

std::optional<Sizes> view_strides(const TensorMeta& meta, const Sizes& sizes) {
  if (meta.numel() == 0) return meta.sizes == sizes ? meta.strides : contiguous_strides(sizes);
  if (meta.sizes.empty()) return Sizes(sizes.size(), 1);
  Sizes out(sizes.size());
  auto view = static_cast<std::ptrdiff_t>(sizes.size()) - 1;
  std::int64_t chunk_stride = meta.strides.back();  // of the contiguous run of old dims that is being consumed
  std::int64_t chunk = 1, taken = 1;
  for (std::size_t d = meta.sizes.size(); d-- > 0;) {
    chunk *= meta.sizes[d];
    const bool ends = d == 0 || (meta.sizes[d - 1] != 1 && meta.strides[d - 1] != chunk * chunk_stride);
    if (!ends) continue;
    while (view >= 0 && (taken < chunk || sizes[static_cast<std::size_t>(view)] == 1)) {
      out[static_cast<std::size_t>(view)] = taken * chunk_stride;
      taken *= sizes[static_cast<std::size_t>(view)];
      --view;
    }
    if (taken != chunk) return std::nullopt;
    if (d > 0) {
      chunk_stride = meta.strides[d - 1];
      chunk = taken = 1;
    }
  }
  return view == -1 ? std::optional(out) : std::nullopt;
}

TensorMeta infer_view(const Graph& graph, const Node& node) {
  const TensorMeta& self = graph.meta(arg(node, "self").value());
  const std::string& op = node.row->op;
  if (op == "permute") return permute(self, arg(node, "dims").as_sizes());
  if (op == "reshape") return reshape(self, arg(node, "shape").as_sizes());
  if (op == "expand") return expand(self, arg(node, "shape").as_sizes());
  if (op == "slice") {
    const std::int64_t step = arg(node, "step").is_none() ? 1 : arg(node, "step").as_int();
    return slice(self, wrap_dim(arg(node, "dim").as_int(), self.sizes.size()), arg(node, "start"), arg(node, "end"), step);
  }
  FXF_ASSERT(op == "flip", "{} is no view primitive", op);
  TensorMeta out = self;  // a flip is a copy in eager
  out.strides = contiguous_strides(out.sizes);
  return out;
}

TensorMeta infer_position(const Graph& graph, const Node& node) {
  if (node.row->op == "pad") {
    TensorMeta out = graph.meta(arg(node, "self").value());
    const Sizes widths = arg(node, "widths").as_sizes();
    FXF_CHECK(widths.size() == 2 * out.sizes.size(), Value, "pad of rank {} got {} widths", out.sizes.size(), widths.size());
    for (std::size_t d = 0; d < out.sizes.size(); ++d) out.sizes[d] += widths[2 * d] + widths[2 * d + 1];
    out.strides = contiguous_strides(out.sizes);
    return out;
  }
  const AttrList& tensors = arg(node, "tensors").list();
  FXF_CHECK(!tensors.empty(), Value, "cat of no tensors");
  TensorMeta out = graph.meta(tensors[0].value());
  out.dtype = promote_operands(graph, tensors);
  const std::size_t dim = wrap_dim(arg(node, "dim").as_int(), out.sizes.size());
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const TensorMeta& other = graph.meta(tensors[i].value());
    FXF_CHECK(other.sizes.size() == out.sizes.size(), Value, "cat of tensors of rank {} and {}", out.sizes.size(), other.sizes.size());
    for (std::size_t d = 0; d < out.sizes.size(); ++d) {
      FXF_CHECK(d == dim || other.sizes[d] == out.sizes[d], Value, "cat: sizes differ in dim {}: {} and {}", d, out.sizes[d], other.sizes[d]);
    }
    out.sizes[dim] += other.sizes[dim];
  }
  out.strides = contiguous_strides(out.sizes);
  return out;
}

TensorMeta infer_indexed(const Graph& graph, const Node& node) {
  const TensorMeta& self = graph.meta(arg(node, "self").value());
  const TensorMeta& index = graph.meta(arg(node, "index").value());
  const std::size_t dim = wrap_dim(arg(node, "dim").as_int(), self.sizes.size());
  FXF_CHECK(!self.sizes.empty(), Value, "{}: an indexed read of a 0-dim tensor", node.name);
  TensorMeta out = self;
  if (std::get<std::string>(arg(node, "mode").v) == "gather") {
    out.sizes = index.sizes;
  } else {
    out.sizes.assign(self.sizes.begin(), self.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
    out.sizes.insert(out.sizes.end(), index.sizes.begin(), index.sizes.end());
    if (!self.sizes.empty()) out.sizes.insert(out.sizes.end(), self.sizes.begin() + static_cast<std::ptrdiff_t>(dim) + 1, self.sizes.end());
  }
  out.strides = contiguous_strides(out.sizes);
  return out;
}

TensorMeta infer_factory(const Graph&, const Node& node) {
  const Attr& dtype = arg(node, "dtype");
  DType type = DType::Int64;
  if (const auto* given = std::get_if<DType>(&dtype.v)) type = *given;
  else if (node.row->op == "full") type = std::holds_alternative<double>(arg(node, "value").v) ? DType::Float32 : std::holds_alternative<bool>(arg(node, "value").v) ? DType::Bool : DType::Int64;
  const Attr& device = arg(node, "device");
  const auto* given = std::get_if<Device>(&device.v);
  return contiguous(type, given != nullptr ? *given : Device{}, arg(node, "shape").as_sizes());
}

}  // namespace fxfuser::ir
