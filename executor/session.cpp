#include "executor/session.h"

#include "codegen/cuda/nvrtc.h"
#include "codegen/host/host_compiler.h"
#include "executor/driver_api.h"
#include "executor/host_memory.h"
#include "executor/host_parallel.h"

namespace fxfuser::executor {
namespace {

DiskCache make_disk_cache(const std::string& folder) {
  return environment().no_disk_cache ? DiskCache() : DiskCache(folder);
}

}  // namespace

Session::Session(const std::string& cache_folder)
    : ops(ir::OpTable::from_json(ir::embedded_ops_json(), "configs/ops.json")),
      capability(partitioner::CapabilityTable::from_json(partitioner::embedded_capability_json(), "configs/capability.json")),
      kernels(make_disk_cache(cache_folder)) {
  capability.validate(ops);
}

codegen::ArchInfo Session::arch(const ir::Device& device) {
  if (device.kind != ir::DeviceKind::Cuda) return emulated_ ? *emulated_ : codegen::ArchInfo::host(host_threads());
  if (!Driver::available()) return codegen::ArchInfo::h200();
  const std::lock_guard<std::mutex> lock(mutex_);
  const int index = device.index < 0 ? 0 : device.index;
  const auto found = devices_.find(index);
  if (found != devices_.end()) return found->second;
  const DeviceFacts facts = Driver::facts(index);
  codegen::ArchInfo arch = codegen::ArchInfo::of_device(facts.name, facts.sm);
  arch.name = facts.name;
  arch.sm = facts.sm;
  arch.sm_count = facts.sm_count;
  arch.max_threads_per_sm = facts.max_threads_per_sm;
  arch.registers_per_sm = facts.registers_per_sm;
  arch.shared_per_block = facts.shared_per_block;
  arch.shared_per_sm = facts.shared_per_sm;
  arch.l2_bytes = facts.l2_bytes;
  devices_[index] = arch;
  return arch;
}

std::string Session::target_problem(codegen::Target target) {
  std::string why;
  if (target == codegen::Target::Host) {
    if (environment().disable.count("host") > 0) return "the host target is switched off (FXFUSER_DISABLE=host)";
    return codegen::HostCompiler::command(&why).empty() ? why + "; install g++ or set CXX" : "";
  }
  if (emulated_) return "";
  if (environment().disable.count("cuda") > 0) return "the CUDA target is switched off (FXFUSER_DISABLE=cuda)";
  if (!Driver::available(&why)) return why;
  if (!codegen::Nvrtc::available(&why)) return why;
  return "";
}

std::vector<std::string> Session::machine_notes(codegen::Target target) const {
  std::vector<std::string> notes;
  if (!kernels.disk().problem().empty()) notes.push_back(kernels.disk().problem());
  const std::string compiler = target == codegen::Target::Host ? codegen::HostCompiler::note() : std::string();
  if (!compiler.empty()) notes.push_back(compiler);
  return notes;
}

void Session::emulate(codegen::Emulation emulation) {
  emulated_ = emulation.arch;
  kernels.emulate(std::move(emulation));
}

void Session::count_call(const std::string& miss_reason) {
  if (miss_reason.empty()) {
    running_.plan_hits.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.plan_misses;
  ++stats_.miss_reasons[miss_reason];
}

void Session::count_fallback() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.fallbacks;
}

void Session::count_steps(const PlanCounters& counters, const std::vector<std::string>* names) {
  const auto add = [](std::atomic<std::uint64_t>& to, std::uint64_t count) {
    if (count > 0) to.fetch_add(count, std::memory_order_relaxed);
  };
  add(running_.launches_cuda, counters.launches_cuda);
  add(running_.launches_host, counters.launches_host);
  add(running_.aten_steps, counters.aten_steps);
  add(running_.view_steps, counters.view_steps);
  add(running_.graph_replays, counters.graph_replays);
  if (counters.missing_kernels == 0 && names == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.missing_kernels += counters.missing_kernels;
  if (names == nullptr) return;
  for (const std::string& name : *names) ++stats_.kernels[name];
}

Stats Session::stats() {
  const CacheCounters now = kernels.counters();
  const std::lock_guard<std::mutex> lock(mutex_);
  Stats out = stats_;
  out.plan_hits = running_.plan_hits;
  out.launches_cuda = running_.launches_cuda;
  out.launches_host = running_.launches_host;
  out.aten_steps = running_.aten_steps;
  out.view_steps = running_.view_steps;
  out.graph_replays = running_.graph_replays;
  out.calls = out.plan_hits + out.plan_misses + out.fallbacks;
  const HostMemory memory = host_memory();
  out.host_kept_bytes = static_cast<std::uint64_t>(memory.kept_bytes);
  out.host_fresh_blocks = memory.fresh;
  out.host_reused_blocks = memory.reused;
  out.compiles = now.compiles - base_.compiles;
  out.memory_hits = now.memory_hits - base_.memory_hits;
  out.disk_hits = now.disk_hits - base_.disk_hits;
  return out;
}

void Session::reset_stats() {
  const CacheCounters now = kernels.counters();
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_ = Stats{};
  for (std::atomic<std::uint64_t>* count : {&running_.plan_hits, &running_.launches_cuda, &running_.launches_host, &running_.aten_steps, &running_.view_steps, &running_.graph_replays}) *count = 0;
  base_ = now;
}

int Session::kernel_number(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kernel_numbers_.emplace(name, static_cast<int>(kernel_numbers_.size()) + 1).first->second;
}

bool Session::tell_once(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return told_.insert(text).second;
}

void Session::clear(bool disk) {
  kernels.clear(disk);
  release_host_memory();
  ++telling_;
  const std::lock_guard<std::mutex> lock(mutex_);
  told_.clear();
}

}  // namespace fxfuser::executor
