#include "partitioner/ir/hash.h"

#include <fmt/format.h>

namespace fxfuser::ir {
namespace {

constexpr std::uint64_t kSeedHigh = 0x6a09e667f3bcc908u;
constexpr std::uint64_t kSeedLow = 0xbb67ae8584caa73bu;
constexpr std::uint64_t kMultiplierA = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t kMultiplierB = 0xc2b2ae3d27d4eb4fu;

constexpr std::uint64_t rotate(std::uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

/// Spreads each input bit over the whole word (a bijection, so no two lanes collapse).
constexpr std::uint64_t avalanche(std::uint64_t x) {
  x ^= x >> 32;
  x *= kMultiplierA;
  x ^= x >> 29;
  x *= kMultiplierB;
  x ^= x >> 32;
  return x;
}

/// Two coupled lanes: each word enters both by different ways, and each lane is fed to the other.
void absorb(Hash128& state, std::uint64_t word) {
  state.low = rotate(state.low ^ avalanche(word + kMultiplierB), 27) * kMultiplierA + state.high;
  state.high = rotate(state.high + avalanche(word ^ kMultiplierA), 31) * kMultiplierB ^ state.low;
}

Hash128 finish(Hash128 state) {
  const std::uint64_t low = avalanche(state.low + rotate(state.high, 17));
  const std::uint64_t high = avalanche(state.high ^ (low * kMultiplierB));
  return {high, low + rotate(high, 23)};
}

/// Little-endian whatever the machine is.
std::uint64_t word_at(std::string_view bytes, std::size_t at) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return word;
}

}  // namespace

Hash128 hash_bytes(std::string_view bytes) {
  Hash128 state{kSeedHigh, kSeedLow};
  for (std::size_t at = 0; at < bytes.size(); at += 8) absorb(state, word_at(bytes, at));
  absorb(state, bytes.size());  // tells trailing zero bytes from padding
  return finish(state);
}

Hash128 combine(Hash128 a, Hash128 b) {
  Hash128 state = a;
  absorb(state, b.high);
  absorb(state, b.low);
  return finish(state);
}

std::string to_hex(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

}  // namespace fxfuser::ir
