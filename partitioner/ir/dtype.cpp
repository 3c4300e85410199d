#include "partitioner/ir/dtype.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace fxfuser::ir {
namespace {

struct DTypeFacts {
  std::string_view name;
  std::int64_t itemsize;
};

// In the order of the enumeration.
constexpr std::array<DTypeFacts, 15> kFacts{{{"bool", 1},
                                             {"uint8", 1},
                                             {"int8", 1},
                                             {"int16", 2},
                                             {"int32", 4},
                                             {"int64", 8},
                                             {"float16", 2},
                                             {"bfloat16", 2},
                                             {"float32", 4},
                                             {"float64", 8},
                                             {"complex64", 8},
                                             {"complex128", 16},
                                             {"float8_e4m3fn", 1},
                                             {"float8_e5m2", 1},
                                             {"other", 1}}};

constexpr std::array<std::pair<std::string_view, DType>, 8> kAliases{{{"short", DType::Int16},
                                                                      {"int", DType::Int32},
                                                                      {"long", DType::Int64},
                                                                      {"half", DType::Float16},
                                                                      {"float", DType::Float32},
                                                                      {"double", DType::Float64},
                                                                      {"cfloat", DType::Complex64},
                                                                      {"cdouble", DType::Complex128}}};

bool is_float8(DType dtype) { return dtype == DType::Float8E4M3 || dtype == DType::Float8E5M2; }

DType promote_floats(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Float64 || b == DType::Float64) return DType::Float64;
  return DType::Float32;  // float32 with anything, or the two 16-bit types, neither of which holds the other
}

DType promote_integers(DType a, DType b) {
  if (a == b) return a;
  const auto wider = static_cast<DType>(std::max(static_cast<int>(a), static_cast<int>(b)));
  // uint8 and int8 need a sign and 8 bits of value.
  return wider == DType::Int8 ? DType::Int16 : wider;
}

}  // namespace

std::string_view name(DType dtype) { return kFacts[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> parse_dtype(std::string_view text) {
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == text) return static_cast<DType>(i);
  }
  for (const auto& [alias, dtype] : kAliases) {
    if (alias == text) return dtype;
  }
  return std::nullopt;
}

std::int64_t itemsize(DType dtype) { return kFacts[static_cast<std::size_t>(dtype)].itemsize; }

bool is_floating(DType dtype) {
  return (dtype >= DType::Float16 && dtype <= DType::Float64) || is_float8(dtype);
}

bool is_complex(DType dtype) { return dtype == DType::Complex64 || dtype == DType::Complex128; }

bool is_integral(DType dtype) { return dtype >= DType::UInt8 && dtype <= DType::Int64; }

bool is_reduced_float(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16 || is_float8(dtype);
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  // PyTorch refuses to promote 8-bit floats with anything but themselves.
  if (a == DType::Other || b == DType::Other || is_float8(a) || is_float8(b)) return DType::Other;
  if (is_complex(a) || is_complex(b)) {
    const bool wide = a == DType::Complex128 || b == DType::Complex128 || a == DType::Float64 || b == DType::Float64;
    return wide ? DType::Complex128 : DType::Complex64;
  }
  if (is_floating(a) && is_floating(b)) return promote_floats(a, b);
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  return promote_integers(a, b);
}

double rounded_number(double value, DType dtype) {
  if (dtype != DType::Float16 && dtype != DType::BFloat16) return value;
  const double single = static_cast<float>(value);
  if (single == 0 || !std::isfinite(single)) return single;
  const bool half = dtype == DType::Float16;
  const int places = half ? 10 : 7, least = half ? -14 : -126;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(single), least) - places);
  const double rounded = std::nearbyint(single / unit) * unit, beyond = half ? 65520.0 : std::ldexp(1.0, 128);
  return std::abs(rounded) < beyond ? rounded : std::copysign(std::numeric_limits<double>::infinity(), single);
}

DType compute_dtype(DType dtype) { return is_reduced_float(dtype) ? DType::Float32 : dtype; }

}  // namespace fxfuser::ir
