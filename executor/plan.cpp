#include "executor/plan.h"

#include <ATen/Tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>

#include "codegen/host/emulation.h"
#include "executor/aten_bridge.h"
#include "executor/driver_api.h"
#include "executor/dump_launch.h"
#include "executor/host_memory.h"
#include "executor/host_parallel.h"
#include "executor/scalar_step.h"
#include "executor/write_back.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

using Word = std::uint64_t;

template <typename T>
Word word_of(T value) {
  Word word = 0;
  static_assert(sizeof(T) <= sizeof(Word));
  std::memcpy(&word, &value, sizeof value);
  return word;
}

Word scalar_word(const c10::IValue& value, ir::DType dtype) {
  c10::Scalar number = value.isTensor() ? value.toTensor().item() : value.toScalar();
  return ir::is_floating(dtype) ? word_of(number.toDouble()) : word_of(number.isBoolean() ? static_cast<std::int64_t>(number.toBool()) : number.toLong());
}

bool guards_hold(const LaunchStep& step, const Slots& slots) {
  for (const LaunchStep::Expected& expected : step.expected) {
    if (!has_meta(slots[expected.slot].toTensor(), expected.meta)) return false;
  }
  return true;
}

at::Tensor scratch(std::int64_t bytes, const LaunchStep& step) {
  const auto device = step.device >= 0 ? c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(step.device)) : c10::Device(c10::DeviceType::CPU);
  if (step.kept_bytes > 0 && bytes >= kLargeBytes) return allocate_large({bytes}, {1}, c10::ScalarType::Byte, bytes, step.kept_bytes);
  return allocate({bytes}, {1}, c10::ScalarType::Byte, device);
}

/// The block's memory; the first that asks for it allocates it.
const at::Tensor& block_of(const Place& place, const LaunchStep& step, Slots& slots) {
  c10::IValue& block = slots[place.block];
  if (block.isNone()) block = scratch(place.bytes, step);
  return block.toTensor();
}

at::Tensor fresh_output(const TensorOutput& output, const LaunchStep& step, Slots& slots) {
  if (output.place.bytes > 0) return allocate_within(block_of(output.place, step, slots), output.place.offset, output.meta.sizes, output.meta.strides, output.dtype);
  if (output.large_bytes > 0) return allocate_large(output.meta.sizes, output.meta.strides, output.dtype, output.large_bytes, step.kept_bytes);
  return allocate(output.meta.sizes, output.meta.strides, output.dtype, output.device);
}

void* workspace_of(const LaunchStep& step, Slots& slots, at::Tensor& own) {
  if (step.workspace_place.bytes > 0) return static_cast<char*>(block_of(step.workspace_place, step, slots).data_ptr()) + step.workspace_place.offset;
  own = scratch(step.workspace_bytes, step);
  return own.data_ptr();
}

/// On the CPU, with poisoned outputs: what a kernel leaves unwritten shows.
void run_emulated(const LaunchStep& step, const Slots& slots, const void* params) {
  for (const TensorOutput& output : step.outputs) {
    const at::Tensor& tensor = slots[output.slot].toTensor();
    if (tensor.numel() > 0) std::memset(tensor.data_ptr(), 0xff, tensor.nbytes());
  }
  for (std::size_t i = 0; i < step.launches.size(); ++i) {
    const codegen::LaunchConfig& config = step.launches[i];
    if (config.grid[0] > 0) reinterpret_cast<codegen::EmulatedEntry>(step.entries[i])(params, config.grid.data(), config.block.data(), config.cluster);
  }
}

/// On the CPU it has run when this returns.
void start_kernel(const LaunchStep& step, const Slots& slots, void* params) {
  if (step.target == codegen::Target::Host) {
    for (std::size_t i = 0; i < step.launches.size(); ++i) {
      parallel_ranges(reinterpret_cast<RangeFunction>(step.entries[i]), params, step.launches[i].work_items, step.launches[i].grain);
    }
    return;
  }
  if (step.device < 0) return run_emulated(step, slots, params);
  const c10::Device device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(step.device));
  const c10::impl::VirtualGuardImpl guard(device.type());
  const c10::Stream stream = guard.getStream(device);
  Driver::use_device(step.device);
  for (std::size_t i = 0; i < step.launches.size(); ++i) {
    const codegen::LaunchConfig& config = step.launches[i];
    if (config.grid[0] == 0) continue;
    const DriverLaunch launch{{config.grid[0], config.grid[1], config.grid[2]}, {config.block[0], config.block[1], config.block[2]}, config.cluster, config.shared_bytes, config.begins_early};
    Driver::launch(step.entries[i], launch, stream.native_handle(), params);
  }
}

bool run_launch(const LaunchStep& step, Slots& slots, RunCounters& counters) {
  if (!guards_hold(step, slots)) return false;
  c10::SmallVector<Word, 48> block;
  for (SlotId slot : step.pointers) block.push_back(word_of(slots[slot].toTensor().const_data_ptr()));
  for (const TensorOutput& output : step.outputs) {
    at::Tensor tensor = fresh_output(output, step, slots);
    block.push_back(word_of(tensor.data_ptr()));
    slots[output.slot] = std::move(tensor);
  }
  at::Tensor workspace;
  if (step.workspace_bytes > 0) block.push_back(word_of(workspace_of(step, slots, workspace)));
  for (std::int64_t value : step.ints) block.push_back(word_of(value));
  for (std::size_t i = 0; i < step.scalars.size(); ++i) block.push_back(scalar_word(slots[step.scalars[i]], step.scalar_types[i]));
  if (block.empty()) block.push_back(0);
  if (step.dump == 0) start_kernel(step, slots, block.data());
  else dump_launch(step, slots, [&] { start_kernel(step, slots, block.data()); });
  ++(step.target == codegen::Target::Host ? counters.launches_host : counters.launches_cuda);
  if (counters.kernels != nullptr) counters.kernels->push_back(step.kernel->name());
  return true;
}

void run_callable(const CallableStep& step, Slots& slots) {
  std::vector<c10::IValue> arguments;
  for (SlotId slot : step.inputs) arguments.push_back(slots[slot]);
  std::vector<c10::IValue> results = step.callable->call(std::move(arguments));
  FXF_CHECK(results.size() >= step.outputs.size(), Runtime, "a callable returned {} results, {} were traced", results.size(), step.outputs.size());
  for (std::size_t i = 0; i < step.outputs.size(); ++i) slots[step.outputs[i]] = std::move(results[i]);
}

struct Runner {
  Slots& slots;
  RunCounters& counters;

  bool operator()(const LaunchStep& step) const { return run_launch(step, slots, counters); }
  bool operator()(const AtenStep& step) const {
    step.call.run(slots);
    ++counters.aten_steps;
    return true;
  }
  bool operator()(const ViewStep& step) const {
    ++counters.view_steps;
    if (step.same) {
      slots[step.target] = slots[step.source];
      return true;
    }
    const at::Tensor& source = slots[step.source].toTensor();
    slots[step.target] = source.as_strided(step.sizes, step.strides, source.storage_offset() + step.offset);
    return true;
  }
  bool operator()(const ScalarStep& step) const {
    slots[step.output] = run_scalar(step.target, step.args, slots);
    return true;
  }
  bool operator()(const CallableStep& step) const {
    run_callable(step, slots);
    ++counters.aten_steps;
    return true;
  }
  bool operator()(const WriteBackStep& step) const {
    run_write_back(step, slots);
    ++counters.aten_steps;
    return true;
  }
};

}  // namespace

bool run_step(const Step& step, Slots& slots, RunCounters& counters) {
  counters.origin = step.origin;
  auto callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION);
  if (!callbacks) [[likely]] return std::visit(Runner{slots, counters}, step.what);  // no profiler: not even the guard is made
  at::RecordFunction guard(std::move(*callbacks));
  guard.before(step.name);
  return std::visit(Runner{slots, counters}, step.what);
}

std::int64_t bytes_of(const ir::TensorMeta& meta) { return meta.numel() * ir::itemsize(meta.dtype); }

std::int64_t tensor_bytes(const LaunchStep& step) {
  std::int64_t bytes = step.input_bytes;
  for (const TensorOutput& output : step.outputs) bytes += bytes_of(output.meta);
  return bytes;
}

namespace {

template <typename T>
std::size_t heap_bytes(const std::vector<T>& items) {
  return items.capacity() == 0 ? 0 : items.capacity() * sizeof(T) + 16;
}
std::size_t heap_bytes(const ir::TensorMeta& meta) { return heap_bytes(meta.sizes) + heap_bytes(meta.strides); }

std::size_t heap_bytes(const LaunchStep& step) {
  std::size_t bytes = heap_bytes(step.pointers) + heap_bytes(step.expected) + heap_bytes(step.scalars) + heap_bytes(step.scalar_types) + heap_bytes(step.outputs) + heap_bytes(step.ints) +
                      heap_bytes(step.launches) + heap_bytes(step.entries);
  for (const LaunchStep::Expected& expected : step.expected) bytes += heap_bytes(expected.meta);
  for (const TensorOutput& output : step.outputs) bytes += heap_bytes(output.meta);
  for (const codegen::LaunchConfig& launch : step.launches) bytes += launch.entry.capacity() + 16;
  return bytes;
}

std::size_t heap_bytes(const Step& step) {
  const std::size_t bytes = step.name.capacity() + 16 + heap_bytes(step.free_after);
  if (const auto* launch = std::get_if<LaunchStep>(&step.what)) return bytes + heap_bytes(*launch);
  if (const auto* view = std::get_if<ViewStep>(&step.what)) return bytes + heap_bytes(view->sizes) + heap_bytes(view->strides);
  if (const auto* aten = std::get_if<AtenStep>(&step.what)) return bytes + aten->call.heap_bytes();
  return bytes;
}

}  // namespace

std::size_t bytes_of(const Plan& plan) {
  std::size_t bytes = sizeof plan + heap_bytes(plan.steps) + heap_bytes(plan.outputs);
  for (const Step& step : plan.steps) bytes += heap_bytes(step);
  return bytes;
}

bool is_brief(const Plan& plan) {
  constexpr std::int64_t kBriefBytes = 128 << 10;  // some ten microseconds of a host kernel
  std::int64_t bytes = 0;
  for (const Step& step : plan.steps) {
    const auto* launch = std::get_if<LaunchStep>(&step.what);
    if (launch != nullptr && (launch->target == codegen::Target::Host || launch->device < 0)) bytes += tensor_bytes(*launch);
    if (launch == nullptr && !std::holds_alternative<ViewStep>(step.what) && !std::holds_alternative<ScalarStep>(step.what)) return false;
  }
  return bytes <= kBriefBytes;
}

std::optional<std::uint32_t> Plan::run(Slots& slots, RunCounters& counters, bool give_up) const {
  for (const Step& step : steps) {
    if (!run_step(step, slots, counters)) return step.unit;
    for (SlotId slot : step.free_after) slots[slot] = c10::IValue();
    if (!give_up) continue;
    for (SlotId slot : step.inputs_after) slots[slot] = c10::IValue();
  }
  return std::nullopt;
}

namespace {

void attr_reads(const ir::Attr& attr, const std::function<void(SlotId)>& fn) {
  if (attr.is_value()) fn(attr.value());
  else if (attr.is_list()) ir::for_each_value(attr.list(), fn);
}

}  // namespace

void for_each_read(const Step& step, const std::function<void(SlotId)>& fn) {
  if (const auto* launch = std::get_if<LaunchStep>(&step.what)) {
    for (SlotId slot : launch->pointers) fn(slot);
    for (SlotId slot : launch->scalars) fn(slot);
  } else if (const auto* aten = std::get_if<AtenStep>(&step.what)) {
    aten->call.for_each_input(fn);
  } else if (const auto* view = std::get_if<ViewStep>(&step.what)) {
    fn(view->source);
  } else if (const auto* scalar = std::get_if<ScalarStep>(&step.what)) {
    for (const ir::Attr& attr : scalar->args) attr_reads(attr, fn);
  } else if (const auto* callable = std::get_if<CallableStep>(&step.what)) {
    for (SlotId slot : callable->inputs) fn(slot);
  } else if (const auto* write = std::get_if<WriteBackStep>(&step.what)) {
    for (SlotId slot : write->targets) fn(slot);
    for (SlotId slot : write->sources) fn(slot);
  }
}

void for_each_write(const Step& step, const std::function<void(SlotId)>& fn) {
  if (const auto* launch = std::get_if<LaunchStep>(&step.what)) {
    for (const TensorOutput& output : launch->outputs) fn(output.slot);
  } else if (const auto* aten = std::get_if<AtenStep>(&step.what)) {
    for (SlotId slot : aten->call.outputs()) fn(slot);
  } else if (const auto* view = std::get_if<ViewStep>(&step.what)) {
    fn(view->target);
  } else if (const auto* scalar = std::get_if<ScalarStep>(&step.what)) {
    fn(scalar->output);
  } else if (const auto* callable = std::get_if<CallableStep>(&step.what)) {
    for (SlotId slot : callable->outputs) fn(slot);
  }
}

void set_lifetimes(Plan& plan, const std::vector<bool>& keep) {
  std::vector<bool> seen = keep;
  seen.resize(plan.slot_count, false);
  for (std::size_t i = plan.steps.size(); i-- > 0;) {
    Step& step = plan.steps[i];
    step.free_after.clear();
    const auto touch = [&](SlotId slot) {
      if (seen[slot]) return;
      seen[slot] = true;
      step.free_after.push_back(slot);
    };
    for_each_write(step, touch);
    for_each_read(step, touch);
  }
}

void set_input_lifetimes(Plan& plan, const std::vector<std::pair<SlotId, std::optional<std::uint32_t>>>& last_unit) {
  for (Step& step : plan.steps) step.inputs_after.clear();
  for (const auto& [slot, unit] : last_unit) {
    if (!unit) continue;
    for (std::size_t i = plan.steps.size(); i-- > 0;) {
      if (plan.steps[i].unit > *unit && i > 0) continue;
      plan.steps[i].inputs_after.push_back(slot);
      break;
    }
  }
}

}  // namespace fxfuser::executor
