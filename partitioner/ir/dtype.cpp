#include "partitioner/ir/dtype.h"

#include <array>

namespace fxfuser::ir {
namespace {

struct Facts {
  std::string_view name;
  std::string_view alias;  // PyTorch's other name
  std::int64_t size;
};

constexpr std::array<Facts, 15> kFacts{{{"bool", "bool", 1},
                                        {"uint8", "byte", 1},
                                        {"int8", "char", 1},
                                        {"int16", "short", 2},
                                        {"int32", "int", 4},
                                        {"int64", "long", 8},
                                        {"float16", "half", 2},
                                        {"bfloat16", "bfloat16", 2},
                                        {"float32", "float", 4},
                                        {"float64", "double", 8},
                                        {"complex64", "cfloat", 8},
                                        {"complex128", "cdouble", 16},
                                        {"float8_e4m3fn", "float8_e4m3fn", 1},
                                        {"float8_e5m2", "float8_e5m2", 1},
                                        {"other", "other", 1}}};

const Facts& facts(DType dtype) { return kFacts[static_cast<std::size_t>(dtype)]; }

DType promote_integers(DType a, DType b) {
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  // uint8 beside a signed type of at most its width needs the next wider signed type.
  if (a == DType::UInt8 && b == DType::Int8) return DType::Int16;
  if (b == DType::UInt8 && a == DType::Int8) return DType::Int16;
  return itemsize(a) > itemsize(b) || (itemsize(a) == itemsize(b) && a > b) ? a : b;
}

DType complex_of(DType real) {
  return real == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

}  // namespace

std::string_view name(DType dtype) { return facts(dtype).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  if (text.starts_with("torch.")) text.remove_prefix(6);
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == text || kFacts[i].alias == text) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t itemsize(DType dtype) { return facts(dtype).size; }

bool is_floating(DType dtype) {
  return (dtype >= DType::Float16 && dtype <= DType::Float64) || dtype == DType::Float8E4M3 || dtype == DType::Float8E5M2;
}
bool is_complex(DType dtype) { return dtype == DType::Complex64 || dtype == DType::Complex128; }
bool is_integral(DType dtype) { return dtype >= DType::UInt8 && dtype <= DType::Int64; }
bool is_reduced_float(DType dtype) { return is_floating(dtype) && itemsize(dtype) <= 2; }

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::Other || b == DType::Other) return DType::Other;
  if (is_complex(a) || is_complex(b)) {
    const DType wide = is_complex(a) && is_complex(b) ? DType::Complex128 : DType::Other;
    if (wide != DType::Other) return wide;  // complex64 with complex128
    const DType c = is_complex(a) ? a : b;
    const DType other = is_complex(a) ? b : a;
    return c == DType::Complex128 ? c : complex_of(is_floating(other) ? other : DType::Float32);
  }
  if (is_floating(a) && is_floating(b)) {
    // Two different 16-bit types (or an 8-bit one beside another float of at most its width) meet in float32.
    if (itemsize(a) == itemsize(b)) return DType::Float32;
    return itemsize(a) > itemsize(b) ? a : b;
  }
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  return promote_integers(a, b);
}

DType compute_dtype(DType dtype) { return is_reduced_float(dtype) ? DType::Float32 : dtype; }

}  // namespace fxfuser::ir
