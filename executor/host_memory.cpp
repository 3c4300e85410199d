#include "executor/host_memory.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <pthread.h>
#include <sys/mman.h>

#include <chrono>
#include <list>
#include <mutex>
#include <thread>

namespace fxfuser::executor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kStep = 64 << 10, kHugePage = 2 << 20, kHugeBlock = 4 << 20;
constexpr std::size_t kDefaultKept = 256 << 20;  // of storages that were resized
constexpr auto kRest = std::chrono::seconds(1);

struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;       // of the mapping
  std::size_t kept_bytes = 0;  // what may be kept, this block counted, when it returns
  Clock::time_point since;     // when it returned
};
using Blocks = std::list<Block>;

std::size_t rounded_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

/// Null when the system has none. Large blocks start at a huge page and ask for such pages: one fault for 2 MiB.
void* map_block(std::size_t bytes) {
  const std::size_t slack = bytes >= kHugeBlock ? kHugePage : 0;
  void* mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (slack == 0) return mapped;
  char* const start = static_cast<char*>(mapped);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t before = rounded_up(address, kHugePage) - address;
  if (before > 0) munmap(start, before);
  if (slack > before) munmap(start + before + bytes, slack - before);
  madvise(start + before, bytes, MADV_HUGEPAGE);
  return start + before;
}

void unmap(const Blocks& blocks) {
  for (const Block& block : blocks) munmap(block.data, block.bytes);
}

class Pool final : public c10::Allocator {
 public:
  /// Never destroyed: tensors may outlive everything.
  static Pool& get() {
    static Pool& pool = *new Pool();
    return pool;
  }

  c10::DataPtr take(std::size_t bytes, std::size_t kept_bytes) {
    const std::size_t size = rounded_up(bytes, bytes >= kHugeBlock ? kHugePage : kStep);
    auto block = std::make_unique<Block>(reuse(size));
    if (block->data == nullptr) block->data = map_block(size), block->bytes = size;
    if (block->data == nullptr) {
      release();
      return c10::GetCPUAllocator()->allocate(bytes);
    }
    block->kept_bytes = kept_bytes;
    c10::profiledCPUMemoryReporter().New(block->data, block->bytes);
    void* const data = block->data;
    return {data, block.release(), &Pool::give_back, c10::Device(c10::DeviceType::CPU)};
  }

  // What a storage of ours asks for when it is resized.
  c10::DataPtr allocate(std::size_t bytes) override {
    return bytes < static_cast<std::size_t>(kLargeBytes) ? c10::GetCPUAllocator()->allocate(bytes) : take(bytes, kDefaultKept);
  }
  void copy_data(void* target, const void* source, std::size_t count) const override { default_copy_data(target, source, count); }

  void release() {
    Blocks out;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      out.swap(kept_);
      facts_.kept_bytes = 0;
    }
    unmap(out);
  }

  HostMemory facts() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return facts_;
  }

 private:
  Pool() { pthread_atfork(&Pool::hold_for_fork, &Pool::go_on, &Pool::start_anew_in_child); }
  static void hold_for_fork() { get().mutex_.lock(); }
  static void go_on() { get().mutex_.unlock(); }
  static void start_anew_in_child() {
    get().watched_ = false;  // the thread is the parent's
    get().mutex_.unlock();
  }

  /// The smallest kept block that holds `size` and is no more than a quarter too large; an empty one when there is none.
  Block reuse(std::size_t size) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto best = kept_.end();
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      if (at->bytes < size || at->bytes > size + size / 4) continue;
      if (best == kept_.end() || at->bytes < best->bytes) best = at;
    }
    if (best == kept_.end()) {
      ++facts_.fresh;
      return {};
    }
    ++facts_.reused;
    const Block block = *best;
    kept_.erase(best);
    facts_.kept_bytes -= static_cast<std::int64_t>(block.bytes);
    return block;
  }

  static void give_back(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    c10::profiledCPUMemoryReporter().Delete(block->data);
    get().keep(*block);
  }

  void keep(Block block) {
    Blocks out;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      block.since = Clock::now();
      kept_.push_front(block);
      facts_.kept_bytes += static_cast<std::int64_t>(block.bytes);
      while (facts_.kept_bytes > static_cast<std::int64_t>(block.kept_bytes)) drop_oldest(out);
      if (!kept_.empty() && !watched_) {
        watched_ = true;
        try {
          std::thread(&Pool::watch).detach();
        } catch (const std::system_error&) {  // no thread to be had: nothing is kept
          watched_ = false;
          while (!kept_.empty()) drop_oldest(out);
        }
      }
    }
    unmap(out);
  }

  void drop_oldest(Blocks& out) {
    facts_.kept_bytes -= static_cast<std::int64_t>(kept_.back().bytes);
    out.splice(out.end(), kept_, std::prev(kept_.end()));
  }

  /// Gives back what has rested; ends when nothing is kept.
  static void watch() {
    Pool& pool = get();
    while (true) {
      Blocks out;
      Clock::time_point next;
      {
        const std::lock_guard<std::mutex> lock(pool.mutex_);
        const auto now = Clock::now();
        while (!pool.kept_.empty() && pool.kept_.back().since + kRest <= now) pool.drop_oldest(out);
        pool.watched_ = !pool.kept_.empty();
        if (pool.watched_) next = pool.kept_.back().since + kRest;
      }
      unmap(out);
      if (next == Clock::time_point()) return;
      std::this_thread::sleep_until(next);
    }
  }

  std::mutex mutex_;
  Blocks kept_;  // latest first
  bool watched_ = false;
  HostMemory facts_;
};

}  // namespace

at::Tensor allocate_large(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, std::int64_t bytes, std::int64_t kept_bytes) {
  Pool& pool = Pool::get();
  const auto size = static_cast<std::size_t>(bytes);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), size, pool.take(size, static_cast<std::size_t>(kept_bytes)), &pool, /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

HostMemory host_memory() { return Pool::get().facts(); }

void release_host_memory() { Pool::get().release(); }

}  // namespace fxfuser::executor
