#include "partitioner/ir/infer.h"

#include <algorithm>

#include "partitioner/ir/error.h"
#include "partitioner/ir/infer_view.h"

namespace fxfuser::ir {
namespace {

DType default_float(DType dtype) { return is_floating(dtype) || is_complex(dtype) ? dtype : DType::Float32; }

DType real_of(DType dtype) { return dtype == DType::Complex64 ? DType::Float32 : dtype == DType::Complex128 ? DType::Float64 : dtype; }

DType attr_dtype(const Node& node, DType fallback) {
  const auto& params = node.row->params;
  if (std::find(params.begin(), params.end(), "dtype") == params.end()) return fallback;
  const auto* given = std::get_if<DType>(&arg(node, "dtype").v);
  return given != nullptr ? *given : fallback;
}

struct Types {
  DType compute, result;
};

Types types_of(const Node& node, DType promoted) {
  switch (node.row->result) {
    case ResultRule::Default:
    case ResultRule::NoOpmath:
    case ResultRule::Same: return {promoted, promoted};
    case ResultRule::IntToFloat: return {default_float(promoted), default_float(promoted)};
    case ResultRule::AlwaysBool: return {promoted, DType::Bool};
    case ResultRule::ComplexToFloat: return {promoted, real_of(promoted)};
    case ResultRule::Long: return {promoted, DType::Int64};
    case ResultRule::BoolToLong: {
      const DType wide = promoted == DType::Bool || is_integral(promoted) ? DType::Int64 : promoted;
      return {wide, wide};
    }
    case ResultRule::AttrDType: {
      const bool reduction = node.row->kind == OpKind::Reduction;
      const DType wide = reduction && (promoted == DType::Bool || is_integral(promoted)) ? DType::Int64 : promoted;
      const DType result = attr_dtype(node, wide);
      return {reduction ? result : promoted, result};
    }
  }
  return {promoted, promoted};
}

const TensorMeta& number_meta() {
  static const TensorMeta meta{DType::Float32, Device{}, {}, {}};
  return meta;
}

Inferred infer_pointwise(const Graph& graph, const Node& node) {
  std::vector<Attr> operands;
  std::vector<const TensorMeta*> metas;
  Sizes sizes;
  Device device;
  bool seen = false;
  for (const std::string& param : node.row->tensor_params) {
    const Attr& operand = arg(node, param);
    operands.push_back(operand);
    if (!operand.is_value() || graph.value(operand.value()).kind != ValueKind::Tensor) {
      metas.push_back(&number_meta());
      continue;
    }
    const TensorMeta& meta = graph.meta(operand.value());
    sizes = broadcast_shapes(sizes, meta.sizes);
    metas.push_back(&meta);
    // A 0-dim CPU operand beside another device's tensors is a number there.
    if (!seen || (device.kind == DeviceKind::Cpu && meta.device.kind != DeviceKind::Cpu)) device = meta.device;
    seen = true;
  }
  FXF_CHECK(seen, Value, "{} ({}) has no tensor operand", node.name, node.row->op);
  const DType promoted = node.row->result == ResultRule::Same ? graph.meta(std::find_if(operands.begin(), operands.end(), [&](const Attr& operand) {
                                                                  return operand.is_value() && graph.value(operand.value()).kind == ValueKind::Tensor;
                                                                })->value()).dtype
                                                              : promote_operands(graph, operands);
  const Types types = types_of(node, promoted);
  Sizes strides = node.row->strides == "contiguous" ? contiguous_strides(sizes) : iterator_strides(sizes, metas);
  return {{TensorMeta{types.result, device, std::move(sizes), std::move(strides)}}, types.compute};
}

Inferred infer_cast(const Graph& graph, const Node& node) {
  const TensorMeta& self = graph.meta(arg(node, "self").value());
  TensorMeta out = self;
  const auto* dtype = std::get_if<DType>(&arg(node, "dtype").v);
  FXF_CHECK(dtype != nullptr, Type, "{}: a cast without a dtype", node.name);
  out.dtype = *dtype;
  out.strides = is_non_overlapping_and_dense(self) ? self.strides : iterator_strides(self.sizes, {&self});
  return {{out}, self.dtype};
}

Inferred infer_reduction(const Graph& graph, const Node& node) {
  const TensorMeta& self = graph.meta(arg(node, "self").value());
  const std::size_t rank = self.sizes.size();
  std::vector<bool> reduced(rank, false);
  const Attr& dims = arg(node, "dims");
  const Sizes list = dims.as_sizes();
  if (dims.is_none() || list.empty()) reduced.assign(rank, true);
  for (std::int64_t dim : list) {
    const std::size_t d = wrap_dim(dim, rank);
    if (rank == 0) continue;
    FXF_CHECK(!reduced[d], Value, "{}: dim {} is reduced twice", node.name, d);
    reduced[d] = true;
  }
  const Attr& keep = arg(node, "keepdim");
  const bool keepdim = !keep.is_none() && keep.as_bool();
  Sizes sizes;
  for (std::size_t d = 0; d < rank; ++d) {
    if (!reduced[d]) sizes.push_back(self.sizes[d]);
    else if (keepdim) sizes.push_back(1);
  }
  const Types types = types_of(node, self.dtype);
  std::vector<TensorMeta> outputs{contiguous(types.result, self.device, sizes)};
  if (node.row->outputs.size() == 2) outputs.push_back(contiguous(DType::Int64, self.device, sizes));
  return {std::move(outputs), types.compute};
}

}  // namespace

Inferred infer(const Graph& graph, const Node& node) {
  FXF_ASSERT(node.row != nullptr, "{} has no row", node.name);
  switch (node.row->kind) {
    case OpKind::Pointwise: return infer_pointwise(graph, node);
    case OpKind::Cast: return infer_cast(graph, node);
    case OpKind::Reduction: return infer_reduction(graph, node);
    case OpKind::View: {
      const TensorMeta out = infer_view(graph, node);
      return {{out}, out.dtype};
    }
    case OpKind::Position: {
      const TensorMeta out = infer_position(graph, node);
      return {{out}, out.dtype};
    }
    case OpKind::Indexed: {
      const TensorMeta out = infer_indexed(graph, node);
      return {{out}, out.dtype};
    }
    case OpKind::Factory: {
      const TensorMeta out = infer_factory(graph, node);
      return {{out}, out.dtype};
    }
    case OpKind::Composite: break;
  }
  throw_error(ErrorKind::Internal, fmt::format("{} is a composite: decompose it first", node.name));
}

}  // namespace fxfuser::ir
