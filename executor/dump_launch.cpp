#include "executor/dump_launch.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "executor/driver_api.h"
#include "executor/plan.h"

namespace fxfuser::executor {
namespace {

enum Bits : std::uint8_t { kLaunchParam = 1, kBandwidth = 2 };

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Elements by their size over all tensors that come in or go out, as in 2022: an expanded input counts every element that it has.
std::int64_t all_bytes(const LaunchStep& step, const Slots& slots) {
  std::int64_t bytes = tensor_bytes(step);
  for (SlotId slot : step.scalars) {
    if (slots[slot].isTensor()) bytes += static_cast<std::int64_t>(slots[slot].toTensor().nbytes());
  }
  return bytes;
}

std::string shape_text(const LaunchStep& step, const codegen::LaunchConfig& launch) {
  if (step.target == codegen::Target::Host) return fmt::format("work items = {}, grain = {}", launch.work_items, launch.grain);
  return fmt::format("BlockDim.x = {}, BlockDim.y = {}, BlockDim.z = {}, GridDim.x = {}, GridDim.y = {}, GridDim.z = {}, Smem Size = {}", launch.block[0], launch.block[1],
                     launch.block[2], launch.grid[0], launch.grid[1], launch.grid[2], launch.shared_bytes);
}

void print_time(const LaunchStep& step, std::int64_t bytes, double milliseconds) {
  print(fmt::format("kernel{} run in {:.4f} ms, achieved: {:.6g} GB/s\n", step.number, milliseconds, milliseconds > 0 ? static_cast<double>(bytes) / milliseconds / 1e6 : 0.0));
}

void time_on_host(const LaunchStep& step, std::int64_t bytes, const std::function<void()>& start) {
  const auto before = std::chrono::steady_clock::now();
  start();
  print_time(step, bytes, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count());
}

void time_on_device(const LaunchStep& step, std::int64_t bytes, const std::function<void()>& start) {
  const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(step.device));
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  if (Driver::is_capturing(stream.native_handle())) {
    start();
    print(fmt::format("kernel{} captured in a CUDA graph, {} bytes: its time is not known here\n", step.number, bytes));
    return;
  }
  c10::Event begin(device.type(), c10::EventFlag::BACKEND_DEFAULT), end(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  begin.record(stream);
  start();
  end.record(stream);
  end.synchronize();
  print_time(step, bytes, begin.elapsedTime(end));
}

}  // namespace

std::uint8_t launch_dump(const Options& options) {
  unsigned bits = 0;
  if (options.dump.count("launch_param") > 0) bits |= kLaunchParam;
  if (options.dump.count("dump_eff_bandwidth") > 0) bits |= kBandwidth;
  return static_cast<std::uint8_t>(bits);
}

void dump_launch(const LaunchStep& step, const Slots& slots, const std::function<void()>& start) {
  if ((step.dump & kLaunchParam) != 0) {
    for (const codegen::LaunchConfig& launch : step.launches) print(fmt::format("Launch Parameters: kernel{} {}: {}\n", step.number, launch.entry, shape_text(step, launch)));
  }
  if ((step.dump & kBandwidth) == 0) return start();
  const std::int64_t bytes = all_bytes(step, slots);
  if (step.device < 0) time_on_host(step, bytes, start);
  else time_on_device(step, bytes, start);
}

}  // namespace fxfuser::executor
