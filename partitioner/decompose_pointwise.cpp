// Composites that come down to one or a few elementwise rows.

#include <algorithm>
#include <cmath>
#include <limits>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {
namespace {

using B = DecomposeBuilder;
using Values = std::vector<ValueId>;

std::string text(B& b, std::string_view param) {
  const auto* word = std::get_if<std::string>(&b.arg(param).v);
  return word == nullptr ? "" : *word;
}

Values gelu(B& b) { return {b.unary(text(b, "approximate") == "tanh" ? "gelu_tanh" : "gelu_erf", b.tensor("self"))}; }

/// The first half of a dim, let through by the second.
Values glu(B& b) {
  const ValueId self = b.tensor("self");
  const std::size_t rank = b.meta(self).sizes.size();
  FXF_CHECK(rank > 0, Value, "{}: glu of a tensor without dims", b.node().name);
  const std::size_t dim = b.dim("dim", rank);
  const std::int64_t size = b.meta(self).sizes[dim];
  FXF_CHECK(size % 2 == 0, Value, "{}: the size of dim {} is {}, which has no half", b.node().name, dim, size);
  return {b.mul(b.slice(self, dim, 0, size / 2), b.ref(b.unary("sigmoid", b.slice(self, dim, size / 2, size))))};
}

Values gelu_backward(B& b) {
  return {b.call(text(b, "approximate") == "tanh" ? "gelu_tanh_backward" : "gelu_erf_backward", {b.arg("grad"), b.arg("self")})};
}

Values div_mode(B& b) {
  const std::string mode = text(b, "rounding_mode");
  return {b.binary(mode == "floor" ? "div_floor" : mode == "trunc" ? "div_trunc" : "div", b.arg("self"), b.arg("other"))};
}

/// A tensor to the power of a number. Eager's CPU kernel of float32 keeps an exponent that float32 can't hold.
ValueId to_power(B& b, ValueId self, const Attr& exponent) {
  const double e = exponent.as_double();
  const DType dtype = b.meta(self).dtype;
  const bool held = std::isnan(e) || static_cast<double>(static_cast<float>(e)) == e;
  if (dtype != DType::Float32 || b.meta(self).device.kind != ir::DeviceKind::Cpu || held) return b.binary("pow_real", b.ref(self), exponent);
  return b.result(b.binary("pow_real", b.ref(b.cast(self, DType::Float64)), exponent), dtype);
}

/// x to the power of 0.5: a root but at -inf and -0, where a power is positive. (As pow(x, 0.5) compilers may take it for a root.)
ValueId power_of_half(B& b, ValueId self) {
  const ValueId root = b.where(b.binary("eq", b.ref(self), 0.0), 0.0, b.ref(b.unary("sqrt", self)));
  return b.where(b.unary("isinf", self), std::numeric_limits<double>::infinity(), b.ref(root));
}

/// The exponents that eager computes without pow.
Values power(B& b) {
  const Attr& base = b.arg("self");
  const Attr& exponent = b.arg("exponent");
  if (base.is_value() && exponent.is_number()) {
    const double e = exponent.as_double();
    const ValueId self = base.value();
    const ir::TensorMeta& meta = b.meta(self);
    const bool real = ir::is_floating(meta.dtype);
    // Of the CPU's float16 eager takes a power, not a root.
    const bool rooted = real && !(meta.device.kind == ir::DeviceKind::Cpu && meta.dtype == DType::Float16);
    if (real && !rooted && std::abs(e) == 0.5) {
      const ValueId root = power_of_half(b, self);
      return {e > 0 ? root : b.unary("reciprocal", root)};
    }
    if (e == 1 && real) return {self};
    if (e == 2 && (real || std::holds_alternative<std::int64_t>(exponent.v))) return {b.mul(self, b.ref(self))};
    if (e == 3 && real) return {b.mul(b.mul(self, b.ref(self)), b.ref(self))};
    if (e == 0.5 && rooted) return {b.unary("sqrt", self)};
    if (e == -0.5 && rooted) return {b.unary("rsqrt", self)};
    if (e == -1 && real) return {b.unary("reciprocal", self)};
    if (e == -2 && real) return {b.unary("reciprocal", b.mul(self, b.ref(self)))};
    if (real) return {to_power(b, self, exponent)};
  }
  return {b.binary("pow_real", base, exponent)};
}

/// Promotion is over the two branches only; the condition is converted to bool.
Values where(B& b) {
  const Attr& self = b.arg("self");
  const Attr& other = b.arg("other");
  const DType dtype = ir::promote_operands(b.graph(), {self, other});
  const auto branch = [&](const Attr& value) { return value.is_value() && b.graph().value(value.value()).kind == ir::ValueKind::Tensor ? Attr(b.ref(b.cast(value.value(), dtype))) : value; };
  Attr first = branch(self), second = branch(other);
  if (!first.is_value() && !second.is_value()) {
    const ir::Device device = b.meta(b.tensor("condition")).device;
    first = b.ref(b.full({}, first, dtype, device));
  }
  const ValueId condition = b.cast(b.tensor("condition"), DType::Bool);
  const ValueId out = b.where(condition, first, second);
  return {b.cast(out, dtype)};
}

Values masked_fill(B& b) {
  const ValueId self = b.tensor("self");
  const DType dtype = b.meta(self).dtype;
  Attr value = b.arg("value");
  if (value.is_value()) value = b.ref(b.cast(value.value(), dtype));
  const ValueId out = b.where(b.tensor("mask"), value, b.ref(self));
  return {b.cast(out, dtype)};
}

/// Eager leaves x as it is where the only limit is a number that is NaN; between two limits, and of a tensor, a NaN is handed on.
Values clamp(B& b) {
  Attr value = b.arg("self");
  if (b.has("min") != b.has("max")) {
    const std::string_view given = b.has("min") ? "min" : "max";
    const Attr& limit = b.arg(given);
    if (!limit.is_value() || b.graph().value(limit.value()).kind != ir::ValueKind::Tensor) return {b.binary(given == "min" ? "limit_below" : "limit_above", value, limit)};
  }
  if (b.has("min")) value = b.ref(b.binary("clamp_min", value, b.arg("min")));
  if (b.has("max")) value = b.ref(b.binary("clamp_max", value, b.arg("max")));
  return {value.value()};
}

Values nan_to_num(B& b) {
  const ValueId self = b.tensor("self");
  const double most = [&] {
    switch (b.meta(self).dtype) {
      case DType::Float16: return 65504.0;
      case DType::BFloat16: return 3.3895313892515355e38;
      case DType::Float64: return std::numeric_limits<double>::max();
      default: return static_cast<double>(std::numeric_limits<float>::max());
    }
  }();
  return {b.call("nan_to_num_full", {b.ref(self), b.real("nan", 0.0), b.real("posinf", most), b.real("neginf", -most)})};
}

DType wanted_dtype(B& b, DType fallback) {
  const auto* dtype = std::get_if<DType>(&b.arg("dtype").v);
  return dtype == nullptr ? fallback : *dtype;
}

Values to_copy(B& b) {
  const ValueId self = b.tensor("self");
  return {b.call("cast", {b.ref(self), wanted_dtype(b, b.meta(self).dtype)})};
}

Values to_dtype(B& b) {
  const ValueId self = b.tensor("self");
  const DType dtype = wanted_dtype(b, b.meta(self).dtype);
  if (dtype == b.meta(self).dtype && !b.flag("copy", false)) return {self};
  return {b.call("cast", {b.ref(self), dtype})};
}

Values to_other(B& b) { return {b.cast(b.tensor("self"), b.meta(b.tensor("other")).dtype)}; }

Values each(B& b, std::string_view op, bool with_alpha) {
  Values out;
  const ir::AttrList selves = b.arg("self").list();
  const Attr other = b.arg("other");
  for (std::size_t i = 0; i < selves.size(); ++i) {
    std::vector<Attr> args{selves[i]};
    if (!other.is_none()) args.push_back(other.is_list() ? other.list().at(i) : other);
    if (with_alpha) args.push_back(b.has("alpha") ? b.arg("alpha") : Attr(std::int64_t{1}));
    out.push_back(b.call(op, std::move(args)));
  }
  return out;
}

Values foreach_add(B& b) { return each(b, "add", true); }
Values foreach_sub(B& b) { return each(b, "sub", true); }
Values foreach_mul(B& b) { return each(b, "mul", false); }
Values foreach_div(B& b) { return each(b, "div", false); }
Values foreach_clamp_max(B& b) { return each(b, "clamp_max", false); }
Values foreach_clamp_min(B& b) { return each(b, "clamp_min", false); }
Values foreach_unary(B& b) {
  Values out;
  for (const Attr& self : b.arg("self").list()) out.push_back(b.call(text(b, "op"), {self}));
  return out;
}

}  // namespace

const DecompositionTable& pointwise_decompositions() {
  static const DecompositionTable table = {{"gelu", gelu},
                                           {"gelu_backward", gelu_backward},
                                           {"div_mode", div_mode},
                                           {"pow", power},
                                           {"where", where},
                                           {"masked_fill", masked_fill},
                                           {"clamp", clamp},
                                           {"nan_to_num", nan_to_num},
                                           {"to_copy", to_copy},
                                           {"to_dtype", to_dtype},
                                           {"to_other", to_other},
                                           {"foreach_add", foreach_add},
                                           {"foreach_sub", foreach_sub},
                                           {"foreach_mul", foreach_mul},
                                           {"foreach_div", foreach_div},
                                           {"foreach_clamp_max", foreach_clamp_max},
                                           {"foreach_clamp_min", foreach_clamp_min},
                                           {"glu", glu},
                                           {"foreach_unary", foreach_unary}};
  return table;
}

}  // namespace fxfuser::partitioner
