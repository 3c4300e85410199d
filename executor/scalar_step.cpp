#include "executor/scalar_step.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

using c10::IValue;
using Values = std::vector<IValue>;

double real(const IValue& value) { return value.isDouble() ? value.toDouble() : value.isBool() ? (value.toBool() ? 1.0 : 0.0) : static_cast<double>(value.toInt()); }
std::int64_t whole(const IValue& value) { return value.isBool() ? (value.toBool() ? 1 : 0) : value.toInt(); }
bool any_real(const Values& v) {
  for (const IValue& value : v) {
    if (value.isDouble()) return true;
  }
  return false;
}
bool truth(const IValue& value) { return value.isDouble() ? value.toDouble() != 0 : whole(value) != 0; }

__extension__ typedef __int128 Wide;

/// Python's integers have no end; a plan's have 64 bits and say when that is too few.
void check_fits(bool fits) { FXF_CHECK(fits, Runtime, "an integer of the graph's own arithmetic needs more than 64 bits"); }

std::int64_t fitting(Wide value) {
  const auto narrow = static_cast<std::int64_t>(value);
  check_fits(narrow == value);
  return narrow;
}

std::int64_t sum(std::int64_t a, std::int64_t b) { return fitting(Wide{a} + b); }
std::int64_t difference(std::int64_t a, std::int64_t b) { return fitting(Wide{a} - b); }
std::int64_t product(std::int64_t a, std::int64_t b) { return fitting(Wide{a} * b); }

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t out = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) out = product(out, base);
    if (exponent > 1) base = product(base, base);
  }
  return out;
}

std::int64_t shifted_left(std::int64_t a, std::int64_t by) {
  FXF_CHECK(by >= 0, Value, "negative shift count");
  if (a == 0) return 0;
  check_fits(by <= 62);
  return product(a, std::int64_t{1} << by);
}

std::int64_t shifted_right(std::int64_t a, std::int64_t by) {
  FXF_CHECK(by >= 0, Value, "negative shift count");
  return a >> std::min<std::int64_t>(by, 63);
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  FXF_CHECK(b != 0, Runtime, "integer division or modulo by zero");
  if (b == -1) return difference(0, a);
  const std::int64_t q = a / b;
  return q - (a % b != 0 && ((a < 0) != (b < 0)));
}

std::int64_t truncated_remainder(std::int64_t a, std::int64_t b) {
  FXF_CHECK(b != 0, Runtime, "integer division or modulo by zero");
  return b == -1 ? 0 : a % b;
}

template <typename Real, typename Whole>
std::function<IValue(const Values&)> arithmetic(Real on_real, Whole on_whole) {
  return [=](const Values& v) { return any_real(v) ? IValue(on_real(real(v.at(0)), real(v.at(1)))) : IValue(on_whole(whole(v.at(0)), whole(v.at(1)))); };
}

template <typename Compare>
std::function<IValue(const Values&)> comparison(Compare compare) {
  return [=](const Values& v) { return any_real(v) ? IValue(compare(real(v.at(0)), real(v.at(1)))) : IValue(compare(whole(v.at(0)), whole(v.at(1)))); };
}

const std::map<std::string, std::function<IValue(const Values&)>, std::less<>>& operators() {
  static const std::map<std::string, std::function<IValue(const Values&)>, std::less<>> table = {
      {"operator.add", arithmetic([](double a, double b) { return a + b; }, sum)},
      {"operator.sub", arithmetic([](double a, double b) { return a - b; }, difference)},
      {"operator.mul", arithmetic([](double a, double b) { return a * b; }, product)},
      {"operator.floordiv", arithmetic([](double a, double b) { return std::floor(a / b); }, floor_div)},
      {"operator.mod", arithmetic([](double a, double b) { return a - std::floor(a / b) * b; }, [](std::int64_t a, std::int64_t b) { return b == -1 ? 0 : a - floor_div(a, b) * b; })},
      {"operator.truediv", [](const Values& v) { return IValue(real(v.at(0)) / real(v.at(1))); }},
      {"operator.pow", [](const Values& v) {
         if (any_real(v) || whole(v.at(1)) < 0) return IValue(std::pow(real(v.at(0)), real(v.at(1))));
         return IValue(power(whole(v.at(0)), whole(v.at(1))));
       }},
      {"operator.neg", [](const Values& v) { return v.at(0).isDouble() ? IValue(-v[0].toDouble()) : IValue(difference(0, whole(v[0]))); }},
      {"operator.pos", [](const Values& v) { return v.at(0); }},
      {"operator.abs", [](const Values& v) { return v.at(0).isDouble() ? IValue(std::fabs(v[0].toDouble())) : IValue(whole(v[0]) < 0 ? difference(0, whole(v[0])) : whole(v[0])); }},
      {"operator.eq", comparison([](auto a, auto b) { return a == b; })},
      {"operator.ne", comparison([](auto a, auto b) { return a != b; })},
      {"operator.lt", comparison([](auto a, auto b) { return a < b; })},
      {"operator.le", comparison([](auto a, auto b) { return a <= b; })},
      {"operator.gt", comparison([](auto a, auto b) { return a > b; })},
      {"operator.ge", comparison([](auto a, auto b) { return a >= b; })},
      {"operator.not_", [](const Values& v) { return IValue(!truth(v.at(0))); }},
      {"operator.and_", [](const Values& v) { return v.at(0).isBool() && v.at(1).isBool() ? IValue(v[0].toBool() && v[1].toBool()) : IValue(whole(v[0]) & whole(v[1])); }},
      {"operator.or_", [](const Values& v) { return v.at(0).isBool() && v.at(1).isBool() ? IValue(v[0].toBool() || v[1].toBool()) : IValue(whole(v[0]) | whole(v[1])); }},
      {"operator.xor", [](const Values& v) { return IValue(whole(v.at(0)) ^ whole(v.at(1))); }},
      {"operator.lshift", [](const Values& v) { return IValue(shifted_left(whole(v.at(0)), whole(v.at(1)))); }},
      {"operator.rshift", [](const Values& v) { return IValue(shifted_right(whole(v.at(0)), whole(v.at(1)))); }},
      {"torch.sym_max", arithmetic([](double a, double b) { return a < b ? b : a; }, [](std::int64_t a, std::int64_t b) { return a < b ? b : a; })},
      {"torch.sym_min", arithmetic([](double a, double b) { return b < a ? b : a; }, [](std::int64_t a, std::int64_t b) { return b < a ? b : a; })},
      {"torch.sym_float", [](const Values& v) { return IValue(real(v.at(0))); }},
      {"torch.sym_int", [](const Values& v) { return v.at(0).isDouble() ? IValue(static_cast<std::int64_t>(v[0].toDouble())) : IValue(whole(v[0])); }},
      {"torch.sym_not", [](const Values& v) { return IValue(!truth(v.at(0))); }},
      {"torch.sym_ite", [](const Values& v) { return truth(v.at(0)) ? v.at(1) : v.at(2); }},
      {"torch.sym_sqrt", [](const Values& v) { return IValue(std::sqrt(real(v.at(0)))); }},
      {"operator.invert", [](const Values& v) { return v.at(0).isBool() ? IValue(!v[0].toBool()) : IValue(~whole(v[0])); }},
      {"torch.fmod", arithmetic([](double a, double b) { return std::fmod(a, b); }, truncated_remainder)},
      {"torch.atan2", [](const Values& v) { return IValue(std::atan2(real(v.at(0)), real(v.at(1)))); }},
      {"torch.relu", [](const Values& v) { return v.at(0).isDouble() ? IValue(v[0].toDouble() <= 0 ? 0.0 : v[0].toDouble()) : IValue(std::max<std::int64_t>(whole(v[0]), 0)); }},
      {"torch.sign", [](const Values& v) {
         const double x = real(v.at(0));
         const int sign = (x > 0) - (x < 0);
         return v[0].isDouble() ? IValue(static_cast<double>(sign)) : IValue(static_cast<std::int64_t>(sign));
       }},
      {"torch.to", [](const Values& v) {  // (number, dtype)
         const auto type = static_cast<c10::ScalarType>(v.at(1).toInt());
         if (type == c10::ScalarType::Bool) return IValue(truth(v[0]));
         if (c10::isIntegralType(type, false)) return v[0].isDouble() ? IValue(static_cast<std::int64_t>(v[0].toDouble())) : IValue(whole(v[0]));
         FXF_CHECK(c10::isFloatingType(type), NotImplemented, "a number cast to {}", c10::toString(type));
         return IValue(real(v[0]));
       }},
  };
  return table;
}

// What torch computes on one float64 number, by name.
const std::map<std::string, double (*)(double), std::less<>>& functions() {
  static const std::map<std::string, double (*)(double), std::less<>> table = {
      {"torch.acos", std::acos},   {"torch.acosh", std::acosh}, {"torch.asin", std::asin},     {"torch.asinh", std::asinh}, {"torch.atan", std::atan},
      {"torch.atanh", std::atanh}, {"torch.ceil", std::ceil},   {"torch.cos", std::cos},       {"torch.cosh", std::cosh},   {"torch.erf", std::erf},
      {"torch.erfc", std::erfc},   {"torch.exp", std::exp},     {"torch.exp2", std::exp2},     {"torch.expm1", std::expm1}, {"torch.floor", std::floor},
      {"torch.lgamma", std::lgamma}, {"torch.log", std::log},   {"torch.log10", std::log10},   {"torch.log1p", std::log1p}, {"torch.log2", std::log2},
      {"torch.round", std::nearbyint}, {"torch.sin", std::sin}, {"torch.sinh", std::sinh},     {"torch.sqrt", std::sqrt},   {"torch.tan", std::tan},
      {"torch.tanh", std::tanh},   {"torch.trunc", std::trunc},
      {"torch.frac", [](double x) { return x - std::trunc(x); }},
      {"torch.reciprocal", [](double x) { return 1.0 / x; }},
      {"torch.rsqrt", [](double x) { return 1.0 / std::sqrt(x); }},
      {"torch.sigmoid", [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
      {"torch.silu", [](double x) { return x / (1.0 + std::exp(-x)); }},
  };
  return table;
}

// The same for questions about a number.
const std::map<std::string, bool (*)(double), std::less<>>& predicates() {
  static const std::map<std::string, bool (*)(double), std::less<>> table = {
      {"torch.isfinite", [](double x) { return std::isfinite(x); }},
      {"torch.isinf", [](double x) { return std::isinf(x); }},
      {"torch.isnan", [](double x) { return std::isnan(x); }},
      {"torch.isneginf", [](double x) { return x < 0 && std::isinf(x); }},
      {"torch.isposinf", [](double x) { return x > 0 && std::isinf(x); }},
      {"torch.isreal", [](double) { return true; }},
  };
  return table;
}

}  // namespace


c10::IValue run_scalar(const std::string& target, const std::vector<ir::Attr>& args, const Slots& slots) {
  if (const auto function = functions().find(target); function != functions().end()) return function->second(real(to_ivalue(args.at(0), c10::TypePtr(c10::NumberType::get()), slots)));
  if (const auto predicate = predicates().find(target); predicate != predicates().end()) return predicate->second(real(to_ivalue(args.at(0), c10::TypePtr(c10::NumberType::get()), slots)));
  const auto found = operators().find(target);
  FXF_CHECK(found != operators().end(), Runtime, "{} is not among the scalar ops that a plan runs", target);
  Values values;
  for (const ir::Attr& attr : args) values.push_back(to_ivalue(attr, c10::TypePtr(c10::NumberType::get()), slots));
  return found->second(values);
}

}  // namespace fxfuser::executor
