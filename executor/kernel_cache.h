#pragma once
// Kernel text -> loaded kernel, in memory and on disk. The key is everything that changes bytes: text, prelude, flags,
// architecture or CPU, compiler, library. One compile a key among threads and processes; several missing host kernels are
// compiled in one run of the compiler.

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "codegen/cuda/nvrtc.h"
#include "codegen/host/emulation.h"
#include "codegen/kernel_source.h"
#include "executor/compile_progress.h"
#include "executor/compiled_kernel.h"
#include "executor/disk_cache.h"
#include "executor/log.h"

namespace fxfuser::executor {

struct CacheCounters {
  std::uint64_t compiles = 0, memory_hits = 0, disk_hits = 0;
  double compile_seconds = 0;
};

class KernelCache {
 public:
  /// A loaded host kernel takes about 30 KB: kernels that no plan holds may take 30 MB.
  static constexpr std::size_t kCapacity = 1024;

  explicit KernelCache(DiskCache disk, std::size_t capacity = kCapacity) : disk_(std::move(disk)), capacity_(capacity) {}

  /// Makes every kernel loadable, in parallel; returns them in order. Throws Error(Runtime) with the compiler's log.
  std::vector<std::shared_ptr<CompiledKernel>> get(const std::vector<const codegen::KernelSource*>& sources, int sm);
  /// The kernels that are in memory or on disk, in order; null where only a compile would make one.
  std::vector<std::shared_ptr<CompiledKernel>> find_present(const std::vector<const codegen::KernelSource*>& sources, int sm);
  /// Where a kernel came from; nullopt when it is not in memory. Counts as no use.
  std::optional<KernelOrigin> origin(const codegen::KernelSource& source, int sm);
  /// Why a kernel did not compile in the background; empty when it was not tried.
  std::string failure(const codegen::KernelSource& source, int sm);
  void remember_failure(const codegen::KernelSource& source, int sm, std::string why);
  /// Compiles what the folder `pack` lacks, as for the cache folder; nothing is loaded. The number of different kernels.
  std::size_t fill(const std::vector<const codegen::KernelSource*>& sources, int sm, const DiskCache& pack);
  /// See Service::load_pack; `sm` is 0 without a device.
  std::size_t add_pack(const std::string& folder, int sm);
  /// Where lines for the log gather.
  PendingLines& lines() { return lines_; }
  /// Grows whenever what is present may have changed.
  std::uint64_t version() const { return version_; }
  CacheCounters counters() const;
  void clear(bool disk);
  const DiskCache& disk() const { return disk_; }
  /// From now on CUDA kernels are compiled for the CPU (tests).
  void emulate(codegen::Emulation emulation) {
    emulation_ = std::move(emulation);
    prefixes_.clear();
  }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<CompiledKernel> kernel;
  };
  std::shared_ptr<CompiledKernel> find(const std::string& key);
  /// From the disk into memory; null when it is not there.
  std::shared_ptr<CompiledKernel> load(const std::string& key, const codegen::KernelSource& source);
  void remember(const std::string& key, std::shared_ptr<CompiledKernel> kernel);
  /// Forgets the kernels that were used longest ago, among those that nobody else holds, until `capacity` are left.
  void trim();
  using Missing = std::vector<std::pair<std::string, const codegen::KernelSource*>>;
  /// Several kernels a run of the host compiler.
  void compile_host(Missing missing, CompileProgress& progress);
  codegen::Binary host_binary(const Missing& kernels) const;
  /// Of the cache folder, else of a pack.
  std::optional<std::string> stored(const std::string& key, std::string& where) const;
  void compile_cuda(const Missing& missing, int sm, CompileProgress& progress);
  /// Everything that changes bytes; what comes before the text is the same for all kernels of a kind and is made once.
  std::string key_of(const codegen::KernelSource& source, int sm);
  std::string key_prefix(codegen::Target target, bool eager_rounding, int sm) const;

  DiskCache disk_;
  std::vector<DiskCache> packs_;
  PendingLines lines_;
  const std::size_t capacity_;
  std::optional<codegen::Emulation> emulation_;
  mutable std::mutex mutex_;
  std::mutex compiling_;  // one compile at a time decides what is missing
  std::map<std::tuple<codegen::Target, bool, int>, std::string> prefixes_;
  std::list<Entry> order_;  // most recent first
  std::unordered_map<std::string, std::list<Entry>::iterator> entries_;
  std::unordered_map<std::string, std::string> failures_;  // by key
  CacheCounters counters_;
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace fxfuser::executor
