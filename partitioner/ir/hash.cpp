#include "partitioner/ir/hash.h"

#include <fmt/format.h>

#include <cstring>

namespace fxfuser::ir {
namespace {

// Two independent 64-bit lanes, each a multiply-and-fold of the words; constants are odd and have no structure.
constexpr std::uint64_t kHigh = 0x9e3779b97f4a7c15ull;
constexpr std::uint64_t kLow = 0xd6e8feb86659fd93ull;

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t finish(std::uint64_t x) {
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}

}  // namespace

Hash128 hash_bytes(std::string_view bytes) {
  std::uint64_t high = kHigh ^ bytes.size(), low = kLow + bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), count);
    bytes.remove_prefix(count);
    high = fold(high ^ word, kLow) + 0x2545f4914f6cdd1dull;
    low = fold(low + word, kHigh) ^ high;
  }
  return {finish(high), finish(low)};
}

Hash128 combine(Hash128 a, Hash128 b) {
  return {finish(fold(a.high ^ (b.low + kHigh), kLow) ^ b.high), finish(fold(a.low + b.high, kHigh) + b.low)};
}

std::string to_hex(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

}  // namespace fxfuser::ir
