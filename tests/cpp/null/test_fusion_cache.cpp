// What the cache of fusions keeps: definitions up to its capacity, and what they run as for the latest of them.

#include "executor/frontend/fusion_cache.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using namespace fxfuser::frontend;

namespace {

std::vector<Record> definition(std::int64_t number) { return {ScalarRecord{}, ConstantRecord{number, ir::DType::Int64}, OutputRecord{0}}; }

/// A stand-in: the cache holds programs, it never looks into them.
std::shared_ptr<Program> some_program() {
  const auto owner = std::make_shared<int>(0);
  return {owner, reinterpret_cast<Program*>(owner.get())};
}

/// Runs a definition as a caller does that lets it go at once; did it have to be made anew?
bool makes(FusionCache& cache, std::int64_t number) {
  bool made = false;
  cache.intern(definition(number))->program({}, [&] {
    made = true;
    return some_program();
  });
  return made;
}

}  // namespace

TEST_CASE("programs are kept for the latest definitions, and definitions for longer", "[fusion_cache]") {
  FusionCache cache(6, 2);
  for (std::int64_t i = 0; i < 4; ++i) CHECK(makes(cache, i));
  CHECK_FALSE(makes(cache, 3));
  CHECK_FALSE(makes(cache, 2));
  CHECK(makes(cache, 0));  // cold: the definition is there, its program is not
  CHECK(cache.stats().misses == 4);
  CHECK_FALSE(makes(cache, 2));
  CHECK(makes(cache, 3));
  for (std::int64_t i = 10; i < 16; ++i) CHECK(makes(cache, i));
  CHECK(cache.stats().size == 6);
  CHECK(cache.stats().evictions == 4);
  CHECK_FALSE(makes(cache, 15));
  CHECK_FALSE(makes(cache, 14));
}

TEST_CASE("a fusion that somebody holds keeps its program", "[fusion_cache]") {
  FusionCache cache(6, 2);
  const auto held = cache.intern(definition(0));
  const auto first = held->program({}, some_program);
  for (std::int64_t i = 1; i < 9; ++i) makes(cache, i);
  CHECK(held->program({}, some_program) == first);
}

TEST_CASE("a cache smaller than what may be warm, and one that is cleared, go on", "[fusion_cache]") {
  FusionCache cache(2, 4);
  for (std::int64_t i = 0; i < 5; ++i) CHECK(makes(cache, i));
  CHECK_FALSE(makes(cache, 3));
  cache.clear();
  CHECK(cache.stats().size == 0);
  for (std::int64_t i = 0; i < 5; ++i) CHECK(makes(cache, i));
  cache.set_capacity(1);
  CHECK(cache.stats().size == 1);
  CHECK_FALSE(makes(cache, 4));
  cache.set_capacity(8);
  for (std::int64_t i = 0; i < 8; ++i) makes(cache, i);
  CHECK(makes(cache, 0));
  CHECK_FALSE(makes(cache, 7));
}
