// Variances, norms and arg reductions.

#include <algorithm>
#include <cmath>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/infer_view.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

Sizes dims_of(B& b, ValueId self) {
  const std::size_t rank = b.meta(self).sizes.size();
  const Sizes given = b.arg("dims").as_sizes();
  if (given.empty()) return all_dims(rank);
  Sizes dims;
  for (std::int64_t dim : given) {
    if (rank > 0) dims.push_back(static_cast<std::int64_t>(ir::wrap_dim(dim, rank)));
  }
  return dims;
}

struct Moments {
  ValueId variance, mean;  // in the type they are accumulated in
  DType dtype;             // of the results
};

/// Two passes: the mean, then the mean of the squares around it.
Moments moments(B& b) {
  const ValueId self = b.tensor("self");
  const DType dtype = b.meta(self).dtype;
  const Sizes dims = dims_of(b, self);
  const bool keepdim = b.flag("keepdim", false);
  const double correction = b.has("correction") ? b.real("correction", 1) : b.flag("unbiased", true) ? 1 : 0;
  const ValueId wide = b.accumulated(self);
  const ValueId centre = b.reduce("mean", wide, dims, true);
  const ValueId offset = b.sub(wide, b.ref(centre));
  const ValueId variance = b.call("sum_over", {b.ref(b.mul(offset, b.ref(offset))), list_attr(dims), keepdim, correction});
  ValueId mean = centre;
  if (!keepdim) mean = b.reshape(centre, Sizes(b.meta(variance).sizes));
  return {variance, mean, dtype};
}

Values var_mean(B& b) {
  const Moments m = moments(b);
  return {b.result(m.variance, m.dtype), b.result(m.mean, m.dtype)};
}
Values var(B& b) { return {var_mean(b)[0]}; }
Values std_mean(B& b) {
  const Moments m = moments(b);
  return {b.result(b.unary("sqrt", m.variance), m.dtype), b.result(m.mean, m.dtype)};
}
Values std_dev(B& b) { return {std_mean(b)[0]}; }

Values logsumexp(B& b) {
  const ValueId self = b.tensor("self");
  const Sizes dims = dims_of(b, self);
  const ValueId wide = b.widened(self);
  const ValueId top = b.reduce("amax", wide, dims, true);
  // An infinite maximum would make inf - inf: shift by 0 there.
  const ValueId shift = b.where(b.call("isinf", {b.ref(top)}), 0.0, b.ref(top));
  const ValueId total = b.reduce("sum", b.unary("exp", b.sub(wide, b.ref(shift))), dims, true);
  ValueId out = b.add(b.unary("log", total), b.ref(shift));
  if (!b.flag("keepdim", false)) {
    Sizes sizes;
    for (std::size_t d = 0; d < b.meta(self).sizes.size(); ++d) {
      if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end()) sizes.push_back(b.meta(self).sizes[d]);
    }
    out = b.reshape(out, sizes);
  }
  return {b.result(out, b.meta(self).dtype)};
}

Values vector_norm(B& b) {
  const ValueId self = b.tensor("self");
  const DType dtype = b.meta(self).dtype;
  const Sizes dims = dims_of(b, self);
  const bool keepdim = b.flag("keepdim", false);
  const double order = b.real("ord", 2);
  const ValueId wide = b.widened(self);
  ValueId out;
  if (order == 2) out = b.unary("sqrt", b.reduce("sum", b.mul(wide, b.ref(wide)), dims, keepdim));
  else if (order == 1) out = b.reduce("sum", b.unary("abs", wide), dims, keepdim);
  else if (order == 0) out = b.reduce("sum", b.cast(b.binary("ne", b.ref(wide), 0.0), b.meta(wide).dtype), dims, keepdim);
  else out = b.reduce(order > 0 ? "amax" : "amin", b.unary("abs", wide), dims, keepdim);
  return {b.result(out, dtype)};
}

Values arg_extreme(B& b, std::string_view op) {
  ValueId self = b.tensor("self");
  const bool keepdim = b.flag("keepdim", false);
  if (b.has("dims")) return {b.calls(op, {b.ref(self), b.arg("dims"), keepdim}).at(1)};
  const std::size_t rank = b.meta(self).sizes.size();
  const ValueId flat = b.reshape(self, {b.meta(self).numel()});
  const ValueId out = b.calls(op, {b.ref(flat), list_attr({0}), false}).at(1);
  return {keepdim ? b.reshape(out, Sizes(rank, 1)) : out};
}

Values argmax(B& b) { return arg_extreme(b, "max_dim"); }
Values argmin(B& b) { return arg_extreme(b, "min_dim"); }

}  // namespace

const DecompositionTable& reduction_decompositions() {
  static const DecompositionTable table = {{"var", var},           {"var_mean", var_mean},       {"std", std_dev},   {"std_mean", std_mean},
                                           {"logsumexp", logsumexp}, {"vector_norm", vector_norm}, {"argmax", argmax}, {"argmin", argmin}};
  return table;
}

}  // namespace fxfuser::partitioner
