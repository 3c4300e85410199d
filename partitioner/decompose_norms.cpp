// Normalisations: layer, RMS, batch, group, instance. Statistics and the normalised value are computed in float32 for
// 16-bit inputs and rounded once, as eager's kernels do.

#include <algorithm>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {

Sizes last_dims(std::size_t rank, std::size_t count) {
  Sizes dims;
  for (std::size_t d = rank - count; d < rank; ++d) dims.push_back(static_cast<std::int64_t>(d));
  return dims;
}

Sizes channel_shape(const ir::TensorMeta& meta) {
  FXF_CHECK(meta.sizes.size() >= 2, Value, "a batch norm of rank {}", meta.sizes.size());
  Sizes shape(meta.sizes.size(), 1);
  shape.at(1) = meta.sizes[1];
  return shape;
}

namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

struct Normalized {
  ValueId value;  // in the wide type
  ValueId mean, variance, rstd;
};

Normalized normalize(B& b, ValueId wide, const Sizes& dims, double eps) {
  const ValueId mean = b.reduce("mean", wide, dims, true);
  const ValueId offset = b.sub(wide, b.ref(mean));
  const ValueId variance = b.reduce("mean", b.mul(offset, b.ref(offset)), dims, true);
  const ValueId rstd = b.unary("rsqrt", b.add(variance, eps));
  return {b.mul(offset, b.ref(rstd)), mean, variance, rstd};
}

ValueId scaled(B& b, ValueId value, const Attr& weight, const Attr& bias, const Sizes& shape) {
  if (!weight.is_none()) value = b.mul(value, b.ref(b.reshape(b.widened(weight.value()), shape)));
  if (!bias.is_none()) value = b.add(value, b.ref(b.reshape(b.widened(bias.value()), shape)));
  return value;
}

/// The dtype of saved statistics: float32 on CUDA; on the CPU the input's unless the parameters are wider.
DType statistics_dtype(B& b, ValueId input, const Attr& weight) {
  const ir::TensorMeta& meta = b.meta(input);
  const bool mixed = weight.is_value() && b.meta(weight.value()).dtype != meta.dtype;
  if (meta.device.kind == ir::DeviceKind::Cpu && !mixed) return meta.dtype;
  return ir::compute_dtype(meta.dtype);
}

Values native_layer_norm(B& b) {
  const ValueId input = b.tensor("input");
  const Sizes shape = b.arg("normalized_shape").as_sizes();
  const Sizes dims = last_dims(b.meta(input).sizes.size(), shape.size());
  const Attr weight = b.arg("weight"), bias = b.arg("bias");
  const Normalized n = normalize(b, b.widened(input), dims, b.real("eps", 1e-5));
  const ValueId out = b.result(scaled(b, n.value, weight, bias, shape), b.meta(input).dtype);
  const DType saved = statistics_dtype(b, input, weight);
  return {out, b.result(n.mean, saved), b.result(n.rstd, saved)};
}

Values layer_norm(B& b) { return {native_layer_norm(b)[0]}; }

struct RootMeanSquare {
  ValueId value, rstd;
};

RootMeanSquare root_mean_square(B& b) {
  const ValueId input = b.tensor("input");
  const Sizes shape = b.arg("normalized_shape").as_sizes();
  const Sizes dims = last_dims(b.meta(input).sizes.size(), shape.size());
  const DType dtype = b.meta(input).dtype;
  const double fallback = ir::compute_dtype(dtype) == DType::Float64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
  const ValueId wide = b.widened(input);
  const ValueId squares = b.reduce("mean", b.mul(wide, b.ref(wide)), dims, true);
  const ValueId rstd = b.unary("rsqrt", b.add(squares, b.real("eps", fallback)));
  const ValueId value = scaled(b, b.mul(wide, b.ref(rstd)), b.arg("weight"), {}, shape);
  return {b.result(value, dtype), rstd};
}

Values rms_norm(B& b) { return {root_mean_square(b).value}; }
Values fused_rms_norm(B& b) {
  const RootMeanSquare out = root_mean_square(b);
  return {out.value, out.rstd};
}

/// By the statistics of the batch.
struct BatchNorm {
  Values results;  // out, mean, rstd
  Normalized wide;
};

BatchNorm of_batch(B& b) {
  const ValueId input = b.tensor("input");
  const ir::TensorMeta meta = b.meta(input);
  const Sizes shape = channel_shape(meta);
  Sizes dims = all_dims(meta.sizes.size());
  dims.erase(dims.begin() + 1);
  const Normalized n = normalize(b, b.widened(input), dims, b.real("eps", 1e-5));
  const ValueId out = b.result(scaled(b, n.value, b.arg("weight"), b.arg("bias"), shape), meta.dtype);
  const DType saved = statistics_dtype(b, input, b.arg("weight"));
  return {{out, b.result(b.reshape(n.mean, {meta.sizes[1]}), saved), b.result(b.reshape(n.rstd, {meta.sizes[1]}), saved)}, n};
}

Values batch_norm_no_stats(B& b) { return of_batch(b).results; }

/// Training with running statistics: these are results too.
Values batch_norm_functional(B& b) {
  BatchNorm made = of_batch(b);
  const ir::TensorMeta meta = b.meta(b.tensor("input"));
  const double momentum = b.real("momentum", 0.1), count = static_cast<double>(meta.numel()) / static_cast<double>(std::max<std::int64_t>(meta.sizes[1], 1));
  const auto mixed = [&](std::string_view running, ValueId fresh, double factor) {
    const ValueId old = b.tensor(running);
    const ValueId value = b.reshape(fresh, {meta.sizes[1]});
    return b.result(b.add(b.mul(value, factor), b.ref(b.mul(b.widened(old), 1.0 - momentum))), b.meta(old).dtype);
  };
  made.results.push_back(mixed("running_mean", made.wide.mean, momentum));
  made.results.push_back(mixed("running_var", made.wide.variance, momentum * count / (count - 1.0)));  // the unbiased variance
  return made.results;
}

Values native_batch_norm(B& b) {
  if (b.flag("training", false)) return batch_norm_no_stats(b);
  const ValueId input = b.tensor("input");
  const ir::TensorMeta meta = b.meta(input);
  const Sizes shape = channel_shape(meta);
  const ValueId mean = b.reshape(b.widened(b.tensor("running_mean")), shape);
  const ValueId variance = b.reshape(b.widened(b.tensor("running_var")), shape);
  const ValueId rstd = b.unary("rsqrt", b.add(variance, b.real("eps", 1e-5)));
  const ValueId value = b.mul(b.sub(b.widened(input), b.ref(mean)), b.ref(rstd));
  const ValueId out = b.result(scaled(b, value, b.arg("weight"), b.arg("bias"), shape), meta.dtype);
  const Attr weight = b.arg("weight");
  const DType saved = statistics_dtype(b, input, weight.is_value() ? weight : b.arg("running_mean"));
  // In inference CUDA's kernels return the statistics that they used, the CPU's return nothing.
  if (meta.device.kind == ir::DeviceKind::Cuda) return {out, b.result(b.reshape(mean, {meta.sizes[1]}), saved), b.result(b.reshape(rstd, {meta.sizes[1]}), saved)};
  return {out, b.full({0}, 0.0, saved, meta.device), b.full({0}, 0.0, saved, meta.device)};
}

Values batch_norm(B& b) { return {native_batch_norm(b)[0]}; }

Values grouped(B& b, std::int64_t groups) {
  const ValueId input = b.tensor("input");
  const ir::TensorMeta meta = b.meta(input);
  FXF_CHECK(meta.sizes.size() >= 2 && groups > 0 && meta.sizes[1] % groups == 0, Value, "{}: {} channels in {} groups", b.node().name, meta.sizes.at(1), groups);
  const std::int64_t batch = meta.sizes[0];
  const std::int64_t inner = batch == 0 ? 0 : meta.numel() / (batch * groups);
  const ValueId rows = b.reshape(b.widened(input), {batch, groups, inner});
  const Normalized n = normalize(b, rows, {2}, b.real("eps", 1e-5));
  const ValueId value = b.reshape(n.value, meta.sizes);
  const ValueId out = b.result(scaled(b, value, b.arg("weight"), b.arg("bias"), channel_shape(meta)), meta.dtype);
  const DType saved = statistics_dtype(b, input, b.arg("weight"));
  return {out, b.result(b.reshape(n.mean, {batch, groups}), saved), b.result(b.reshape(n.rstd, {batch, groups}), saved)};
}

Values native_group_norm(B& b) { return grouped(b, b.integer("groups", 1)); }
Values group_norm(B& b) { return {grouped(b, b.integer("groups", 1))[0]}; }
Values instance_norm(B& b) { return {grouped(b, b.meta(b.tensor("input")).sizes.at(1))[0]}; }

}  // namespace

const DecompositionTable& norm_decompositions() {
  static const DecompositionTable table = {{"layer_norm", layer_norm},
                                           {"native_layer_norm", native_layer_norm},
                                           {"rms_norm", rms_norm},
                                           {"fused_rms_norm", fused_rms_norm},
                                           {"batch_norm", batch_norm},
                                           {"native_batch_norm", native_batch_norm},
                                           {"batch_norm_no_stats", batch_norm_no_stats},
                                           {"batch_norm_functional", batch_norm_functional},
                                           {"native_group_norm", native_group_norm},
                                           {"group_norm", group_norm},
                                           {"instance_norm", instance_norm}};
  return table;
}

}  // namespace fxfuser::partitioner
