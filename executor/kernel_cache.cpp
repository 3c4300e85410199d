#include "executor/kernel_cache.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "codegen/cuda/nvrtc.h"
#include "codegen/host/host_compiler.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/hash.h"

namespace fxfuser::executor {
namespace {

using codegen::KernelSource;
using codegen::Target;

constexpr const char* kVersion = "fxfuser 0.1.0";

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

/// Runs work(i) for i in [0, count) on a few threads; the first exception is rethrown.
template <typename Work>
void in_parallel(std::size_t count, std::size_t most, Work&& work) {
  const std::size_t cores = std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  const std::size_t threads = std::min({count, most, cores});
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> pool;
  for (std::size_t i = 1; i < threads; ++i) pool.emplace_back(run);
  run();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::string KernelCache::key_of(const KernelSource& source, int sm) {
  const std::tuple wanted(source.target, source.eager_rounding, source.target == Target::Cuda ? sm : 0);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string& prefix = prefixes_[wanted];
  if (prefix.empty()) prefix = key_prefix(source.target, source.eager_rounding, sm);
  return prefix + source.text;
}

std::string KernelCache::key_prefix(Target target, bool eager_rounding, int sm) const {
  std::string key = kVersion;
  if (target == Target::Cuda && emulation_) {
    key += fmt::format("\nemulated {} {}\n{}", ir::to_hex(ir::hash_bytes(emulation_->machine)), ir::to_hex(ir::hash_bytes(codegen::cuda_library())), joined(emulation_->flags));
  } else if (target == Target::Cuda) {
    key += fmt::format("\ncuda {}\nnvrtc {}\n{}", ir::to_hex(ir::hash_bytes(codegen::cuda_prelude())), codegen::Nvrtc::version(), joined(codegen::Nvrtc::flags(sm, eager_rounding)));
  } else {
    key += fmt::format("\nhost {}\n{} {}\n{}\n{}", ir::to_hex(ir::hash_bytes(codegen::host_prelude())), joined(codegen::HostCompiler::command()), codegen::HostCompiler::version(),
                       joined(codegen::HostCompiler::flags(eager_rounding)), codegen::HostCompiler::cpu_features());
  }
  return key + "\n";
}

std::shared_ptr<CompiledKernel> KernelCache::find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return found->second->kernel;
}

void KernelCache::remember(const std::string& key, std::shared_ptr<CompiledKernel> kernel) {
  ++version_;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.count(key) > 0) return;
  order_.push_front({key, std::move(kernel)});
  entries_[key] = order_.begin();
}

void KernelCache::trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto at = order_.end(); entries_.size() > capacity_ && at != order_.begin();) {
    --at;
    if (at->kernel.use_count() > 1) continue;
    entries_.erase(at->key);
    lines_.add(LogTopic::Cache, fmt::format("dropped {}: no plan holds it and the cache is full", at->kernel->name()));
    at = order_.erase(at);
  }
}

std::optional<std::string> KernelCache::stored(const std::string& key, std::string& where) const {
  std::vector<DiskCache> places = {disk_};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    places.insert(places.end(), packs_.begin(), packs_.end());
  }
  for (const DiskCache& place : places) {
    if (auto bytes = place.load(key)) {
      where = place.folder();
      return bytes;
    }
  }
  return std::nullopt;
}

std::shared_ptr<CompiledKernel> KernelCache::load(const std::string& key, const KernelSource& source) {
  std::string where;
  auto bytes = stored(key, where);
  if (!bytes) return nullptr;
  lines_.add(LogTopic::Cache, fmt::format("loaded {} from {}", source.name, where));
  const bool on_host = source.target == Target::Host || emulation_;
  auto kernel = std::make_shared<CompiledKernel>(source.target, source.name, on_host ? LoadedImage::host(*bytes) : LoadedImage::cuda(std::move(*bytes)), KernelOrigin{0, where});
  remember(key, kernel);
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counters_.disk_hits;
  return kernel;
}

std::vector<std::shared_ptr<CompiledKernel>> KernelCache::find_present(const std::vector<const KernelSource*>& sources, int sm) {
  std::vector<std::shared_ptr<CompiledKernel>> out;
  const FlushLines flush(lines_);
  for (const KernelSource* source : sources) {
    const std::string key = key_of(*source, sm);
    std::shared_ptr<CompiledKernel> kernel = find(key);
    if (kernel == nullptr) {
      kernel = load(key, *source);
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++counters_.memory_hits;
    }
    out.push_back(std::move(kernel));
  }
  trim();
  return out;
}

std::optional<KernelOrigin> KernelCache::origin(const KernelSource& source, int sm) {
  const std::string key = key_of(source, sm);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second->kernel->origin());
}

std::string KernelCache::failure(const KernelSource& source, int sm) {
  const std::string key = key_of(source, sm);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = failures_.find(key);
  return found == failures_.end() ? std::string() : found->second;
}

void KernelCache::remember_failure(const KernelSource& source, int sm, std::string why) {
  std::string key = key_of(source, sm);
  const std::lock_guard<std::mutex> lock(mutex_);
  failures_[std::move(key)] = std::move(why);
}

std::vector<std::shared_ptr<CompiledKernel>> KernelCache::get(const std::vector<const KernelSource*>& sources, int sm) {
  std::vector<std::shared_ptr<CompiledKernel>> out(sources.size());
  std::vector<std::string> keys;
  bool complete = true;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    keys.push_back(key_of(*sources[i], sm));
    out[i] = find(keys[i]);
    complete = complete && out[i] != nullptr;
  }
  if (complete) {
    const std::lock_guard<std::mutex> lock(mutex_);
    counters_.memory_hits += sources.size();
    return out;
  }
  const FlushLines flush(lines_);  // after the lock
  const std::lock_guard<std::mutex> alone(compiling_);
  Missing host, cuda;
  std::set<std::string> chosen;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (out[i] != nullptr || find(keys[i]) != nullptr || !chosen.insert(keys[i]).second) continue;
    (sources[i]->target == Target::Host || emulation_ ? host : cuda).emplace_back(keys[i], sources[i]);
  }
  CompileProgress progress(host.size() + cuda.size());
  if (!host.empty()) compile_host(std::move(host), progress);
  if (!cuda.empty()) compile_cuda(cuda, sm, progress);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (out[i] == nullptr) out[i] = find(keys[i]);
    FXF_ASSERT(out[i] != nullptr, "{} was not compiled", sources[i]->name);
  }
  trim();
  return out;
}

codegen::Binary KernelCache::host_binary(const Missing& kernels) const {
  if (emulation_) {
    std::vector<const KernelSource*> sources;
    for (const auto& item : kernels) sources.push_back(item.second);
    return codegen::HostCompiler::compile_unit(codegen::emulated_unit(*emulation_, sources), emulation_->flags);
  }
  std::vector<std::string_view> texts;
  for (const auto& item : kernels) texts.push_back(item.second->text);
  return codegen::HostCompiler::compile(texts, kernels[0].second->eager_rounding);
}

void KernelCache::compile_host(Missing missing, CompileProgress& progress) {
  const auto is_on_disk = [&](const auto& item) { return load(item.first, *item.second) != nullptr; };
  std::erase_if(missing, is_on_disk);
  if (missing.empty()) return;
  // A few compiler runs side by side, each with its share of the kernels.
  const std::size_t cores = std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
  const std::size_t batches = std::min(missing.size(), cores);
  in_parallel(batches, 8, [&](std::size_t batch) {
    for (const bool rounding : {false, true}) {
      Missing mine;
      for (std::size_t i = batch; i < missing.size(); i += batches) {
        if (missing[i].second->eager_rounding == rounding) mine.push_back(missing[i]);
      }
      if (mine.empty()) continue;
      disk_.locked(mine.size() == 1 ? mine[0].first : mine[0].first + std::to_string(mine.size()), [&] {
        std::erase_if(mine, is_on_disk);
        if (mine.empty()) return;
        const codegen::Binary binary = host_binary(mine);
        const auto image = LoadedImage::host(binary.bytes);
        for (const auto& item : mine) {
          remember(item.first, std::make_shared<CompiledKernel>(item.second->target, item.second->name, image, KernelOrigin{binary.seconds / static_cast<double>(mine.size()), {}}));
          disk_.store(item.first, binary.bytes);
          lines_.add(LogTopic::Compile, fmt::format("compiled {} for the host in {:.3f} s{}", item.second->name, binary.seconds, mine.size() > 1 ? fmt::format(" with {} others", mine.size() - 1) : ""));
        }
        progress.add(mine.size());
        const std::lock_guard<std::mutex> lock(mutex_);
        counters_.compiles += mine.size();
        counters_.compile_seconds += binary.seconds;
      });
    }
  });
}

void KernelCache::compile_cuda(const Missing& missing, int sm, CompileProgress& progress) {
  in_parallel(missing.size(), 8, [&](std::size_t i) {
    const auto& [key, source] = missing[i];
    disk_.locked(key, [&, key = key, source = source] {
      if (load(key, *source) == nullptr) {
        codegen::Binary binary = codegen::Nvrtc::compile(source->name, source->text, sm, source->eager_rounding);
        disk_.store(key, binary.bytes);
        lines_.add(LogTopic::Compile, fmt::format("compiled {} for sm_{} in {:.3f} s", source->name, sm, binary.seconds));
        remember(key, std::make_shared<CompiledKernel>(Target::Cuda, source->name, LoadedImage::cuda(std::move(binary.bytes)), KernelOrigin{binary.seconds, {}}));
        const std::lock_guard<std::mutex> lock(mutex_);
        ++counters_.compiles;
        counters_.compile_seconds += binary.seconds;
      }
      progress.add(1);
    });
  });
}

std::size_t KernelCache::fill(const std::vector<const KernelSource*>& sources, int sm, const DiskCache& pack) {
  std::map<std::string, const KernelSource*> wanted;
  for (const KernelSource* source : sources) wanted.emplace(key_of(*source, sm), source);
  const Missing kernels(wanted.begin(), wanted.end());
  const FlushLines flush(lines_);
  in_parallel(kernels.size(), 8, [&](std::size_t i) {
    const auto& [key, source] = kernels[i];
    if (pack.load(key)) return;
    std::string where;
    auto bytes = stored(key, where);
    if (!bytes) {
      const bool host = source->target == Target::Host || emulation_;
      codegen::Binary binary = host ? host_binary({kernels[i]}) : codegen::Nvrtc::compile(source->name, source->text, sm, source->eager_rounding);
      lines_.add(LogTopic::Compile, fmt::format("compiled {} for {} in {:.3f} s", source->name, host ? "the host" : fmt::format("sm_{}", sm), binary.seconds));
      bytes = std::move(binary.bytes);
      const std::lock_guard<std::mutex> lock(mutex_);
      ++counters_.compiles;
      counters_.compile_seconds += binary.seconds;
    }
    pack.store(key, *bytes);
    FXF_CHECK(pack.load(key).has_value(), Runtime, "{} can't be written to {}", source->name, pack.folder());
  });
  return kernels.size();
}

std::size_t KernelCache::add_pack(const std::string& folder, int sm) {
  DiskCache pack = DiskCache::read_only(folder);
  FXF_CHECK(pack.on(), Value, "{}", pack.problem());
  std::vector<std::string> here;
  for (const bool rounding : {false, true}) {
    here.push_back(key_prefix(Target::Host, rounding, 0));
    if (sm > 0 && codegen::Nvrtc::available()) here.push_back(key_prefix(Target::Cuda, rounding, sm));
  }
  const std::vector<std::string> keys = pack.keys();
  const auto fits = [&](const std::string& key) { return std::any_of(here.begin(), here.end(), [&](const std::string& prefix) { return key.starts_with(prefix); }); };
  const auto count = static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), fits));
  FXF_CHECK(!keys.empty(), Value, "{} holds no compiled kernels", pack.folder());
  FXF_CHECK(count > 0, Value, "none of the {} kernels in {} was made for this library, compiler, processor and device; one was made for:\n{}\nhere it is:\n{}", keys.size(), pack.folder(),
            keys[0].substr(0, std::min(keys[0].find("extern"), keys[0].find("FXF_KERNEL"))), here.back());
  ++version_;
  lines_.add(LogTopic::Cache, fmt::format("{} of the {} kernels in {} can be used here", count, keys.size(), pack.folder()));
  const FlushLines flush(lines_);
  const std::lock_guard<std::mutex> lock(mutex_);
  packs_.push_back(std::move(pack));
  return count;
}

CacheCounters KernelCache::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counters_;
}

void KernelCache::clear(bool disk) {
  ++version_;
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.clear();
  order_.clear();
  failures_.clear();
  if (disk) disk_.clear();
}

}  // namespace fxfuser::executor
