// Records compare by value, to the last bit; the cache is bounded and forgets what was used longest ago.

#include <cmath>
#include <limits>
#include <thread>

#include "executor/frontend/fusion_cache.h"
#include "partitioner/ir/error.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using namespace fxfuser::frontend;

namespace {

std::vector<Record> with_constant(const ir::Attr& value) { return {TensorRecord{{-1}, {0}}, ConstantRecord{value, ir::DType::Float64}, OutputRecord{0}}; }

}  // namespace

TEST_CASE("floats are compared to the last bit and NaN equals itself", "[frontend]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(key_of(with_constant(nan)) == key_of(with_constant(-nan)));
  CHECK(key_of(with_constant(0.0)) != key_of(with_constant(-0.0)));
  CHECK(key_of(with_constant(0.1)) == key_of(with_constant(0.1)));
  CHECK(key_of(with_constant(0.1)) != key_of(with_constant(std::nextafter(0.1, 1.0))));
}

TEST_CASE("numbers of different types are different constants", "[frontend]") {
  CHECK(key_of(with_constant(1)) != key_of(with_constant(true)));
  CHECK(key_of(with_constant(1)) != key_of(with_constant(1.0)));
  CHECK(key_of(with_constant(std::complex<double>(1.0))) != key_of(with_constant(1.0)));
}

TEST_CASE("lists and texts can't be cut another way into the same key", "[frontend]") {
  using ir::Attr;
  using ir::AttrList;
  const auto call = [](AttrList args) { return std::vector<Record>{OpRecord{"op", std::move(args), {}}}; };
  CHECK(key_of(call({AttrList{1, 2}, AttrList{3}})) != key_of(call({AttrList{1}, AttrList{2, 3}})));
  CHECK(key_of(call({"ab", "c"})) != key_of(call({"a", "bc"})));
  CHECK(key_of(call({AttrList{}, Attr()})) != key_of(call({Attr(), AttrList{}})));
  CHECK(key_of({TensorRecord{{-1, 1}, {1, 0}}}) != key_of({TensorRecord{{-1, 1}, {0, 1}}}));
}

TEST_CASE("equal definitions share an id, and the last used stay", "[frontend]") {
  FusionCache cache(2);
  const auto first = cache.intern(with_constant(1.0));
  const auto second = cache.intern(with_constant(2.0));
  CHECK(first->id() != second->id());
  CHECK(cache.intern(with_constant(1.0)) == first);
  const auto third = cache.intern(with_constant(3.0));  // the second was used longest ago
  CHECK(cache.find(first->id()) == first);
  CHECK_THROWS_WITH(cache.find(second->id()), ContainsSubstring("Invalid fusion id!"));
  CHECK(cache.intern(with_constant(2.0))->id() > third->id());
  const CacheStats stats = cache.stats();
  CHECK(stats.hits == 1);
  CHECK(stats.misses == 4);
  CHECK(stats.evictions == 2);
  CHECK(stats.size == 2);
}

TEST_CASE("threads that define the same get one fusion", "[frontend]") {
  FusionCache cache;
  std::vector<std::shared_ptr<Fusion>> made(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < made.size(); ++i) threads.emplace_back([&, i] { made[i] = cache.intern(with_constant(static_cast<double>(i % 2))); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 2; i < made.size(); ++i) CHECK(made[i] == made[i % 2]);
  CHECK(cache.stats().size == 2);
}
