// Gradients of layer, RMS, batch and group norms: of the input, the weight and the bias, in this order. Sums are taken in float32
// for 16-bit values, and each gradient is rounded once.

#include <algorithm>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

/// The gradients that output_mask asks for; the others are None.
Values asked_for(B& b, Values gradients) {
  const Attr mask = b.arg("output_mask");
  if (!mask.is_list()) return gradients;
  for (std::size_t i = 0; i < gradients.size() && i < mask.list().size(); ++i) {
    if (!mask.list()[i].as_bool()) gradients[i] = ir::kNoValue;
  }
  return gradients;
}

/// The gradient of a row's elements, given that of its normalised ones: its mean and variance depend on each of them.
ValueId through_statistics(B& b, ValueId dhat, ValueId hat, ValueId rstd, const Sizes& row) {
  const ValueId along = b.reduce("mean", b.mul(dhat, b.ref(hat)), row, true);
  const ValueId shift = b.reduce("mean", dhat, row, true);
  // What is subtracted is small beside the gradient: it is summed first.
  return b.mul(b.sub(dhat, b.ref(b.add(b.mul(hat, b.ref(along)), b.ref(shift)))), b.ref(rstd));
}

Values layer_norm_backward(B& b) {
  const ValueId input = b.tensor("input"), grad = b.tensor("grad");
  const DType dtype = b.meta(input).dtype;
  const Sizes shape = b.arg("normalized_shape").as_sizes();
  const std::size_t rank = b.meta(input).sizes.size();
  const Sizes inner = last_dims(rank, shape.size());
  const Sizes outer = all_dims(rank - shape.size());
  const ValueId mean = b.widened(b.tensor("mean")), rstd = b.widened(b.tensor("rstd"));
  const ValueId dy = b.widened(grad);
  const ValueId hat = b.mul(b.sub(b.widened(input), b.ref(mean)), b.ref(rstd));
  const Attr weight = b.arg("weight");
  const ValueId dhat = weight.is_none() ? dy : b.mul(dy, b.ref(b.widened(weight.value())));
  const ValueId dx = through_statistics(b, dhat, hat, rstd, inner);
  const auto columns = [&](ValueId value, const Attr& like) {
    const ValueId total = outer.empty() ? value : b.reduce("sum", value, outer, false);
    return b.result(total, like.is_value() ? b.meta(like.value()).dtype : dtype);
  };
  return asked_for(b, {b.result(dx, dtype), columns(b.mul(dy, b.ref(hat)), weight), columns(dy, b.arg("bias"))});
}

/// A row's scale alone depends on its elements.
Values rms_norm_backward(B& b) {
  const ValueId input = b.tensor("input");
  const ir::TensorMeta meta = b.meta(input);
  const std::size_t inner = b.arg("normalized_shape").as_sizes().size();
  const Sizes row = last_dims(meta.sizes.size(), inner), outer = all_dims(meta.sizes.size() - inner);
  const ValueId rstd = b.widened(b.tensor("rstd")), dy = b.widened(b.tensor("grad"));
  const ValueId hat = b.mul(b.widened(input), b.ref(rstd));
  const Attr weight = b.arg("weight");
  const ValueId dhat = weight.is_none() ? dy : b.mul(dy, b.ref(b.widened(weight.value())));
  const ValueId along = b.reduce("mean", b.mul(dhat, b.ref(hat)), row, true);
  const ValueId dx = b.result(b.mul(b.sub(dhat, b.ref(b.mul(hat, b.ref(along)))), b.ref(rstd)), meta.dtype);
  if (weight.is_none()) return asked_for(b, {dx, ir::kNoValue});
  const ValueId product = b.mul(dy, b.ref(hat));
  return asked_for(b, {dx, b.result(outer.empty() ? product : b.reduce("sum", product, outer, false), b.meta(weight.value()).dtype)});
}

/// The dtype of a batch norm's parameters, whichever there is: their gradients have it.
DType parameter_dtype(B& b) {
  for (const char* param : {"weight", "running_mean", "mean"}) {
    if (b.has(param)) return b.meta(b.tensor(param)).dtype;
  }
  return b.meta(b.tensor("input")).dtype;
}

/// By the statistics that the forward pass used: the batch's in training, else the running ones.
Values batch_norm_backward(B& b) {
  const ValueId input = b.tensor("input");
  const ir::TensorMeta meta = b.meta(input);
  const bool training = b.flag("training", true);
  const Sizes shape = channel_shape(meta);
  Sizes dims = all_dims(meta.sizes.size());
  dims.erase(dims.begin() + 1);
  const auto channels = [&](ValueId value) { return b.reshape(b.accumulated(value), shape); };
  const ValueId rstd = training ? channels(b.tensor("rstd")) : b.unary("rsqrt", b.add(channels(b.tensor("running_var")), b.real("eps", 1e-5)));
  const ValueId dy = b.accumulated(b.tensor("grad"));
  const ValueId offset = b.sub(b.accumulated(input), b.ref(channels(b.tensor(training ? "mean" : "running_mean"))));
  const ValueId db = b.reduce("sum", dy, dims, true);
  const ValueId dw = b.mul(b.reduce("sum", b.mul(dy, b.ref(offset)), dims, true), b.ref(rstd));
  ValueId inner = dy;
  if (training) {
    // What passes through the batch's own mean and variance.
    const double count = static_cast<double>(meta.numel()) / static_cast<double>(std::max<std::int64_t>(meta.sizes[1], 1));
    const ValueId slope = b.binary("div", b.ref(b.mul(dw, b.ref(rstd))), count);
    inner = b.sub(dy, b.ref(b.add(b.mul(offset, b.ref(slope)), b.ref(b.binary("div", b.ref(db), count)))));
  }
  const Attr weight = b.arg("weight");
  const ValueId scale = weight.is_none() ? rstd : b.mul(rstd, b.ref(channels(weight.value())));
  const DType saved = parameter_dtype(b);
  const auto parameter = [&](ValueId value) { return b.result(b.reshape(value, {meta.sizes[1]}), saved); };
  return asked_for(b, {b.result(b.mul(inner, b.ref(scale)), meta.dtype), parameter(dw), parameter(db)});
}

/// Rows are the groups of a sample; a group's channels have weights and gradients of their own.
Values group_norm_backward(B& b) {
  const ValueId input = b.tensor("input");
  const ir::TensorMeta meta = b.meta(input);
  const std::int64_t groups = b.integer("groups", 1);
  FXF_CHECK(meta.sizes.size() >= 2 && groups > 0 && meta.sizes[1] % groups == 0, Value, "{}: {} channels in {} groups", b.node().name, meta.sizes.at(1), groups);
  const std::int64_t batch = meta.sizes[0], channels = meta.sizes[1];
  const std::int64_t points = batch * channels == 0 ? 0 : meta.numel() / (batch * channels);
  const Sizes full{batch, groups, channels / groups, points}, row{batch, groups, 1, 1};
  const ValueId dy = b.reshape(b.widened(b.tensor("grad")), full);
  const ValueId mean = b.reshape(b.widened(b.tensor("mean")), row), rstd = b.reshape(b.widened(b.tensor("rstd")), row);
  const ValueId hat = b.mul(b.sub(b.reshape(b.widened(input), full), b.ref(mean)), b.ref(rstd));
  const Attr weight = b.arg("weight");
  const ValueId dhat = weight.is_none() ? dy : b.mul(dy, b.ref(b.reshape(b.widened(weight.value()), {1, groups, channels / groups, 1})));
  const ValueId dx = b.result(through_statistics(b, dhat, hat, rstd, {2, 3}), meta.dtype);
  const DType saved = weight.is_none() ? meta.dtype : b.meta(weight.value()).dtype;
  const auto parameter = [&](ValueId value) { return b.result(b.reshape(b.reduce("sum", value, {0, 3}, false), {channels}), saved); };
  return asked_for(b, {b.reshape(dx, meta.sizes), parameter(b.mul(dy, b.ref(hat))), parameter(dy)});
}

}  // namespace

const DecompositionTable& norm_backward_decompositions() {
  static const DecompositionTable table = {{"layer_norm_backward", layer_norm_backward},
                                           {"rms_norm_backward", rms_norm_backward},
                                           {"batch_norm_backward", batch_norm_backward},
                                           {"group_norm_backward", group_norm_backward}};
  return table;
}

}  // namespace fxfuser::partitioner
