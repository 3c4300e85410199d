// Ranges run on PyTorch's own threads, all of them. (at::parallel_for runs serially, without a word, in a unit compiled without
// OpenMP, so the threads are counted.)

#include "executor/host_parallel.h"

#include <ATen/Parallel.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "tests/cpp/catch.h"

using namespace fxfuser::executor;

namespace {

struct Seen {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<long long> items{0}, calls{0};
};

void note(const void* params, long long begin, long long end) {
  auto& seen = **static_cast<Seen* const*>(params);
  {
    const std::lock_guard<std::mutex> lock(seen.mutex);
    seen.threads.insert(std::this_thread::get_id());
  }
  seen.items += end - begin;
  ++seen.calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

TEST_CASE("all of PyTorch's threads take part", "[host_parallel]") {
  at::set_num_threads(2);
  REQUIRE(host_threads() == 2);
  Seen seen;
  Seen* pointer = &seen;
  parallel_ranges(&note, &pointer, 1000, 10);
  CHECK(seen.items == 1000);
  CHECK(seen.threads.size() == 2);
}

TEST_CASE("a range that one thread should take is one call on the caller", "[host_parallel]") {
  Seen seen;
  Seen* pointer = &seen;
  parallel_ranges(&note, &pointer, 10, 10);
  CHECK(seen.calls == 1);
  CHECK(seen.threads == std::set<std::thread::id>{std::this_thread::get_id()});
  parallel_ranges(&note, &pointer, 0, 10);
  CHECK(seen.calls == 1);
}
