// What the kernel cache keeps: kernels that somebody holds, and the latest of the others.

#include "executor/kernel_cache.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using executor::CompiledKernel;
using executor::KernelCache;

namespace {

std::vector<codegen::KernelSource> sources(int first, int count) {
  std::vector<codegen::KernelSource> out;
  for (int i = first; i < first + count; ++i) {
    codegen::KernelSource source;
    source.name = "fxfuser_test_" + std::to_string(i);
    source.text = "extern \"C\" void " + source.name + "(const void*, long long, long long) {}\n";
    out.push_back(std::move(source));
  }
  return out;
}

std::vector<std::shared_ptr<CompiledKernel>> get(KernelCache& cache, const std::vector<codegen::KernelSource>& wanted) {
  std::vector<const codegen::KernelSource*> pointers;
  for (const codegen::KernelSource& source : wanted) pointers.push_back(&source);
  return cache.get(pointers, 0);
}

}  // namespace

TEST_CASE("a call may ask for more kernels than the cache keeps", "[kernel_cache]") {
  KernelCache cache(executor::DiskCache(), 3);
  auto kernels = get(cache, sources(0, 7));
  REQUIRE(kernels.size() == 7);
  for (std::size_t i = 0; i < kernels.size(); ++i) CHECK(kernels[i]->name() == "fxfuser_test_" + std::to_string(i));
  CHECK(cache.counters().compiles == 7);
  CHECK(get(cache, sources(0, 7)) == kernels);  // all are held, so all are there
  CHECK(cache.counters().compiles == 7);
}

TEST_CASE("kernels that nobody holds are bounded, the oldest go first", "[kernel_cache]") {
  KernelCache cache(executor::DiskCache(), 3);
  const auto held = get(cache, sources(0, 1));
  for (int i = 1; i < 6; ++i) get(cache, sources(i, 1));
  CHECK(cache.counters().compiles == 6);
  CHECK(get(cache, sources(0, 1)) == held);
  CHECK(cache.counters().compiles == 6);
  get(cache, sources(4, 2));  // the last two are there
  CHECK(cache.counters().compiles == 6);
  get(cache, sources(3, 1));
  CHECK(cache.counters().compiles == 7);
}
