// Softmax and its kin, forward and backward.

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

struct Prepared {
  ValueId wide;
  Sizes dims;
  DType result;
};

Prepared prepare(B& b) {
  const ValueId self = b.tensor("self");
  const std::size_t rank = b.meta(self).sizes.size();
  const std::size_t dim = b.dim("dim", rank);
  const auto* dtype = std::get_if<DType>(&b.arg("dtype").v);
  const DType result = dtype == nullptr ? b.meta(self).dtype : *dtype;
  ValueId input = b.cast(self, result);
  return {b.widened(input), rank == 0 ? Sizes{} : Sizes{static_cast<std::int64_t>(dim)}, result};
}

ValueId exponentials(B& b, const Prepared& p, ValueId top) { return b.unary("exp", b.sub(p.wide, b.ref(top))); }

Values softmax(B& b) {
  const Prepared p = prepare(b);
  const ValueId powers = exponentials(b, p, b.reduce("amax", p.wide, p.dims, true));
  const ValueId total = b.reduce("sum", powers, p.dims, true);
  return {b.result(b.binary("div", b.ref(powers), b.ref(total)), p.result)};
}

/// Rows of -inf only give 0 where softmax gives NaN.
Values safe_softmax(B& b) {
  const Prepared p = prepare(b);
  const ValueId top = b.reduce("amax", p.wide, p.dims, true);
  const ValueId powers = exponentials(b, p, top);
  const ValueId total = b.reduce("sum", powers, p.dims, true);
  const ValueId plain = b.binary("div", b.ref(powers), b.ref(total));
  const ValueId nothing = b.binary("eq", b.ref(top), -std::numeric_limits<double>::infinity());
  return {b.result(b.where(nothing, 0.0, b.ref(plain)), p.result)};
}

Values log_softmax(B& b) {
  const Prepared p = prepare(b);
  const ValueId shifted = b.sub(p.wide, b.ref(b.reduce("amax", p.wide, p.dims, true)));
  const ValueId total = b.reduce("sum", b.unary("exp", shifted), p.dims, true);
  return {b.result(b.sub(shifted, b.ref(b.unary("log", total))), p.result)};
}

Values softmax_backward(B& b) {
  const ValueId grad = b.widened(b.tensor("grad")), output = b.widened(b.tensor("output"));
  const std::size_t rank = b.meta(grad).sizes.size();
  const Sizes dims = rank == 0 ? Sizes{} : Sizes{static_cast<std::int64_t>(b.dim("dim", rank))};
  const ValueId product = b.mul(grad, b.ref(output));
  const ValueId total = b.reduce("sum", product, dims, true);
  return {b.result(b.sub(product, b.ref(b.mul(output, b.ref(total)))), b.meta(b.tensor("grad")).dtype)};
}

Values log_softmax_backward(B& b) {
  const ValueId grad = b.widened(b.tensor("grad")), output = b.widened(b.tensor("output"));
  const std::size_t rank = b.meta(grad).sizes.size();
  const Sizes dims = rank == 0 ? Sizes{} : Sizes{static_cast<std::int64_t>(b.dim("dim", rank))};
  const ValueId total = b.reduce("sum", grad, dims, true);
  return {b.result(b.sub(grad, b.ref(b.mul(b.unary("exp", output), b.ref(total)))), b.meta(b.tensor("grad")).dtype)};
}

}  // namespace

const DecompositionTable& softmax_decompositions() {
  static const DecompositionTable table = {{"softmax", softmax},
                                           {"safe_softmax", safe_softmax},
                                           {"log_softmax", log_softmax},
                                           {"softmax_backward", softmax_backward},
                                           {"log_softmax_backward", log_softmax_backward}};
  return table;
}

}  // namespace fxfuser::partitioner
