#pragma once
// A stable 128-bit content hash for in-memory keys and for naming cache files (the full key is always compared too).

#include <cstdint>
#include <string>
#include <string_view>

namespace fxfuser::ir {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  auto operator<=>(const Hash128&) const = default;
};

/// Hash of bytes; the same on every machine and in every version of the library.
Hash128 hash_bytes(std::string_view bytes);
Hash128 combine(Hash128 a, Hash128 b);
/// 32 hex digits.
std::string to_hex(const Hash128& hash);

}  // namespace fxfuser::ir
