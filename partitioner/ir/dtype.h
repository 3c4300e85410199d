#pragma once
// The element types that the graph knows, and PyTorch's promotion lattice over them. No torch here: executor/aten_bridge
// translates. The C++ type that holds a value of a dtype in a generated kernel is its register type (compute_dtype).

#include <cstdint>
#include <optional>
#include <string_view>

namespace fxfuser::ir {

enum class DType : std::uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  Float8E4M3,
  Float8E5M2,
  Other,  // exists in PyTorch, but no row can name it: always a reason, never fused
};

/// PyTorch's short name: "float32", "bfloat16", "bool", ...; "other" for the rest.
std::string_view name(DType dtype);
/// The dtype of a PyTorch name ("float32", "torch.float32", "half", "long", ...); nullopt when unknown.
std::optional<DType> parse_dtype(std::string_view text);
/// Bytes an element in memory.
std::int64_t itemsize(DType dtype);

bool is_floating(DType dtype);  // float16 .. float64 and float8
bool is_complex(DType dtype);
bool is_integral(DType dtype);  // without bool
bool is_reduced_float(DType dtype);  // 16-bit and 8-bit floats

/// torch.promote_types.
DType promote(DType a, DType b);
/// A number as a conversion to the dtype leaves it (by way of float32 for 16 bits); dtypes that are not 16-bit floats leave it alone.
double rounded_number(double value, DType dtype);
/// The type a value of this dtype is computed in: 16-bit floats in float32, everything else as it is.
DType compute_dtype(DType dtype);

}  // namespace fxfuser::ir
