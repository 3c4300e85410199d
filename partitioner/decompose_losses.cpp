// Losses: an elementwise part and the reduction that the `reduction` argument asks for.

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

enum Reduction : std::int64_t { kNone = 0, kMean = 1, kSum = 2 };

Values reduced(B& b, ValueId loss) {
  const std::int64_t reduction = b.integer("reduction", kMean);
  if (reduction == kNone) return {loss};
  return {b.reduce(reduction == kMean ? "mean" : "sum", loss, {}, false)};
}

/// The elementwise part in the wide type, the result in the operands' own.
Values loss_of(B& b, std::string_view op, std::vector<Attr> numbers = {}) {
  const DType dtype = ir::promote_operands(b.graph(), {b.arg("self"), b.arg("target")});
  std::vector<Attr> args{b.ref(b.widened(b.tensor("self"))), b.ref(b.widened(b.tensor("target")))};
  args.insert(args.end(), numbers.begin(), numbers.end());
  return {b.result(reduced(b, b.call(op, std::move(args)))[0], dtype)};
}

Values mse_loss(B& b) { return loss_of(b, "squared_difference"); }
Values l1_loss(B& b) { return loss_of(b, "absolute_difference"); }
Values smooth_l1_loss(B& b) {
  const double beta = b.real("beta", 1.0);
  return beta == 0 ? loss_of(b, "absolute_difference") : loss_of(b, "smooth_l1", {beta});
}
Values huber_loss(B& b) { return loss_of(b, "huber", {b.real("delta", 1.0)}); }

Values weighted(B& b, ValueId loss, DType dtype) {
  if (b.has("weight")) loss = b.mul(loss, b.ref(b.widened(b.tensor("weight"))));
  return {b.result(reduced(b, loss)[0], dtype)};
}

Values binary_cross_entropy(B& b) {
  const DType dtype = b.meta(b.tensor("self")).dtype;
  return weighted(b, b.call("bce", {b.ref(b.widened(b.tensor("self"))), b.ref(b.widened(b.tensor("target")))}), dtype);
}

Values bce_with_logits(B& b) {
  const DType dtype = b.meta(b.tensor("self")).dtype;
  const Attr self = b.ref(b.widened(b.tensor("self"))), target = b.ref(b.widened(b.tensor("target")));
  const ValueId loss = b.has("pos_weight") ? b.call("bce_logits_weighted", {self, target, b.ref(b.widened(b.tensor("pos_weight")))})
                                           : b.call("bce_logits", {self, target});
  return weighted(b, loss, dtype);
}

Values mse_loss_backward(B& b) {
  const ValueId self = b.tensor("self");
  const DType dtype = b.meta(self).dtype;
  const ValueId difference = b.sub(b.widened(self), b.ref(b.widened(b.tensor("target"))));
  double factor = 2.0;
  if (b.integer("reduction", kMean) == kMean) factor /= static_cast<double>(std::max<std::int64_t>(b.meta(self).numel(), 1));
  return {b.result(b.mul(b.mul(difference, factor), b.ref(b.widened(b.tensor("grad")))), dtype)};
}

struct Picked {
  ValueId negative;  // -value[target], 0 where ignored
  ValueId counted;   // 1 where not ignored, in the wide type
};

/// Reads one class of each row of `scores` ([C] or [N, C]) by `target`.
Picked pick(B& b, ValueId scores, ValueId target) {
  const std::size_t rank = b.meta(scores).sizes.size();
  FXF_CHECK(rank == 1 || rank == 2, NotImplemented, "{}: scores of rank {}", b.node().name, rank);
  const std::int64_t ignored = b.integer("ignore_index", -100);
  const ValueId counts = b.binary("ne", b.ref(target), ignored);
  const ValueId safe = b.cast(b.where(counts, b.ref(target), std::int64_t{0}), b.meta(target).dtype);
  Sizes index_shape = b.meta(target).sizes;
  index_shape.push_back(1);
  const ValueId index = b.reshape(safe, index_shape);
  const ValueId read = b.reshape(b.gather(scores, index, rank - 1), Sizes(b.meta(target).sizes));
  const ValueId wide = b.widened(read);
  const DType type = b.meta(wide).dtype;
  return {b.where(counts, b.ref(b.unary("neg", wide)), 0.0), b.cast(counts, type)};
}

/// Sum or mean over what is counted; (loss, total weight).
std::pair<ValueId, ValueId> total(B& b, ValueId loss, ValueId counted) {
  const ValueId weight = b.reduce("sum", counted, {}, false);
  const ValueId sum = b.reduce("sum", loss, {}, false);
  return {b.integer("reduction", kMean) == kMean ? b.binary("div", b.ref(sum), b.ref(weight)) : sum, weight};
}

Values nll_loss_forward(B& b) {
  const ValueId self = b.tensor("self");
  const ir::TensorMeta meta = b.meta(self);
  const Picked picked = pick(b, self, b.tensor("target"));
  if (b.integer("reduction", kMean) == kNone) return {b.result(picked.negative, meta.dtype), b.full({}, 0.0, meta.dtype, meta.device)};
  const auto [loss, weight] = total(b, picked.negative, picked.counted);
  return {b.result(loss, meta.dtype), b.result(weight, meta.dtype)};
}

/// The gradient of a row of scores: what its loss has, negative, at the target's place, 0 elsewhere.
Values nll_loss_backward(B& b) {
  const ir::TensorMeta meta = b.meta(b.tensor("self"));
  const std::size_t rank = meta.sizes.size();
  FXF_CHECK(rank == 1 || rank == 2, NotImplemented, "{}: scores of rank {}", b.node().name, rank);
  const ValueId target = b.cast(b.tensor("target"), DType::Int64);
  ValueId slope = b.unary("neg", b.widened(b.tensor("grad")));
  if (b.integer("reduction", kMean) == kMean) slope = b.binary("div", b.ref(slope), b.ref(b.widened(b.tensor("total_weight"))));
  Sizes column = b.meta(target).sizes;
  column.push_back(1);
  const ValueId counted = b.where(b.binary("ne", b.ref(target), b.integer("ignore_index", -100)), b.ref(slope), 0.0);
  const ValueId place = b.index(meta.sizes, rank - 1, DType::Int64, meta.device);
  const ValueId here = b.binary("eq", b.ref(place), b.ref(b.reshape(target, column)));
  return {b.result(b.where(here, b.ref(b.reshape(counted, column)), 0.0), meta.dtype)};
}

/// -log softmax at the target = log of the sum of exponentials - (score at the target - maximum): the scores are read once.
Values cross_entropy_loss(B& b) {
  const ValueId self = b.tensor("self"), target = b.tensor("target");
  const ir::TensorMeta meta = b.meta(self);
  FXF_CHECK(b.real("label_smoothing", 0.0) == 0.0, NotImplemented, "{}: label smoothing", b.node().name);
  const Picked picked = pick(b, self, target);
  const Sizes dims{static_cast<std::int64_t>(meta.sizes.size()) - 1};
  const ValueId wide = b.widened(self);
  const ValueId top = b.reduce("amax", wide, dims, true);
  const ValueId sum = b.reduce("sum", b.unary("exp", b.sub(wide, b.ref(top))), dims, false);
  const ValueId normaliser = b.add(b.unary("log", sum), b.ref(b.reshape(top, Sizes(b.meta(sum).sizes))));
  const ValueId loss = b.mul(b.add(picked.negative, b.ref(normaliser)), b.ref(picked.counted));
  if (b.integer("reduction", kMean) == kNone) return {b.result(loss, meta.dtype)};
  return {b.result(total(b, loss, picked.counted).first, meta.dtype)};
}

}  // namespace

const DecompositionTable& loss_decompositions() {
  static const DecompositionTable table = {{"mse_loss", mse_loss},
                                           {"l1_loss", l1_loss},
                                           {"smooth_l1_loss", smooth_l1_loss},
                                           {"huber_loss", huber_loss},
                                           {"binary_cross_entropy", binary_cross_entropy},
                                           {"bce_with_logits", bce_with_logits},
                                           {"mse_loss_backward", mse_loss_backward},
                                           {"nll_loss_forward", nll_loss_forward},
                                           {"nll_loss_backward", nll_loss_backward},
                                           {"cross_entropy_loss", cross_entropy_loss}};
  return table;
}

}  // namespace fxfuser::partitioner
