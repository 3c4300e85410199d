#include "executor/plan_graph.h"

#include <ATen/Tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>

#include "executor/aten_bridge.h"
#include "executor/driver_api.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

constexpr int kMaxCaptures = 4;      // of one plan: after that its inputs move too often
constexpr int kMaxLiveGraphs = 64;   // of the process
std::atomic<int> live_graphs{0};

/// Why the steps can't be captured; empty when they can.
std::string step_problem(const Plan& plan) {
  for (const Step& step : plan.steps) {
    if (const auto* launch = std::get_if<LaunchStep>(&step.what)) {
      if (launch->target == codegen::Target::Host || launch->device < 0) return "a kernel runs on the host";
    } else if (const auto* aten = std::get_if<AtenStep>(&step.what)) {
      if (const std::string problem = aten->call.replay_problem(); !problem.empty()) return aten->call.name() + " " + problem;
    } else if (std::holds_alternative<CallableStep>(step.what)) {
      return step.name + " is a call of the host program";
    } else if (std::holds_alternative<WriteBackStep>(step.what)) {
      return "the graph writes one of its inputs";
    }
  }
  for (const ir::Attr& output : plan.outputs) {
    if (!output.is_value()) return "an output is no tensor";
  }
  return {};
}

/// The one CUDA device of all inputs; nullopt with a reason.
std::optional<c10::Device> device_of(std::span<const c10::IValue> inputs, std::string& why) {
  std::optional<c10::Device> device;
  for (const c10::IValue& input : inputs) {
    if (input.isDouble()) return why = "a floating-point number among the inputs may differ at each call", std::nullopt;
    if (!input.isTensor()) continue;  // integers and flags are part of the plan's key
    const c10::Device here = input.toTensor().device();
    if (!here.is_cuda() || (device && *device != here)) return why = "the inputs are not on one CUDA device", std::nullopt;
    device = here;
  }
  if (!device) why = "there is no tensor among the inputs";
  return device;
}

const void* address_of(const c10::IValue& input) { return input.isTensor() ? input.toTensor().const_data_ptr() : nullptr; }

/// Results must be tensors of their own: a copy of each is what eager would return.
std::string output_problem(const std::vector<at::Tensor>& outputs, std::span<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor& output = outputs[i];
    if (output.is_view() || output.storage_offset() != 0 || !output.is_non_overlapping_and_dense()) return "a result is a view";
    for (std::size_t other = 0; other < i; ++other) {
      if (output.is_alias_of(outputs[other])) return "two results share memory";
    }
    for (const c10::IValue& input : inputs) {
      if (input.isTensor() && output.is_alias_of(input.toTensor())) return "a result shares memory with an input";
    }
  }
  return {};
}

}  // namespace

PlanGraph::~PlanGraph() { drop(); }

std::string PlanGraph::note() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return note_;
}

void PlanGraph::drop() {
  if (captured_ == nullptr) return;
  try {
    captured_->used.synchronize();  // its memory is about to be given back
  } catch (const std::exception&) {
    // The device is gone, and its memory with it.
  }
  captured_.reset();
  --live_graphs;
}

bool PlanGraph::addresses_hold(const Call& call) {
  bool hold = true;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Input& input = captured_->inputs[i];
    if (input.address == nullptr || input.address == address_of(call.inputs[i])) continue;
    moved_[i] = true;
    hold = false;
  }
  return hold;
}

void PlanGraph::note_addresses(const Call& call) {
  moved_.resize(call.inputs.size(), false);
  const bool again = !seen_.empty();
  seen_.resize(call.inputs.size());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const void* now = address_of(call.inputs[i]);
    if (again && now != seen_[i]) moved_[i] = true;
    seen_[i] = now;
  }
}

bool PlanGraph::run(const Call& call, std::vector<c10::IValue>& outputs, RunCounters& counters) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (refused_) return false;
  std::string why;
  if (call.capture == nullptr) why = "this host program can't capture";
  else if (captured_ == nullptr) why = step_problem(call.plan);  // a plan never changes: once captured it needs no second look
  if (why.empty() && !device_) device_ = device_of(call.inputs, why);  // the plan's key holds the inputs' kinds and devices
  const auto device = device_;
  if (!why.empty() || !device) {
    refused_ = true;
    note_ = "runs plainly: " + why;
    return false;
  }
  const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(*device);
  Driver::use_device(device->index());
  if (Driver::is_capturing(stream.native_handle())) return false;  // the caller's capture takes the plain launches
  if (captured_ != nullptr && !addresses_hold(call)) {
    drop();
    note_ = "captured anew: an input moved";
  }
  if (captured_ == nullptr) {
    const bool warm = !seen_.empty();
    note_addresses(call);
    if (!warm || live_graphs >= kMaxLiveGraphs) return false;
    try {
      FXF_CHECK(captures_++ < kMaxCaptures, Runtime, "its inputs moved after each capture");
      capture(call, *device);
    } catch (const std::exception& error) {
      drop();
      refused_ = true;
      note_ = std::string("runs plainly: ") + error.what();
      return false;
    }
  }
  replay(call, stream, outputs, counters);
  return true;
}

std::vector<PlanGraph::Input> PlanGraph::make_inputs(const Call& call) const {
  std::vector<Input> inputs(call.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!call.inputs[i].isTensor()) continue;
    const at::Tensor& tensor = call.inputs[i].toTensor();
    if (tensor.numel() == 0) continue;
    if (i >= call.constants_from || !moved_[i]) {
      inputs[i].address = tensor.const_data_ptr();
      continue;
    }
    FXF_CHECK(tensor.is_non_overlapping_and_dense(), Runtime, "an input that moves has elements that overlap or lie apart");
    inputs[i].buffer = allocate(tensor.sizes(), tensor.strides(), tensor.scalar_type(), tensor.device());
    inputs[i].buffer.copy_(tensor, true);
  }
  return inputs;
}

void PlanGraph::capture(const Call& call, c10::Device device) {
  auto fresh = std::make_unique<Captured>();
  fresh->inputs = make_inputs(call);
  const auto body = [&] {
    RunCounters counters;
    fresh->names.clear();
    counters.kernels = &fresh->names;
    Slots slots(call.plan.slot_count);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
      const at::Tensor& buffer = fresh->inputs[i].buffer;
      slots[call.input_slots[i]] = buffer.defined() ? c10::IValue(buffer) : call.inputs[i];
    }
    FXF_CHECK(!call.plan.run(slots, counters), Runtime, "a result has another shape at each call");
    fresh->outputs.clear();
    for (const ir::Attr& output : call.plan.outputs) {
      FXF_CHECK(slots[output.value()].isTensor() && slots[output.value()].toTensor().is_cuda(), Runtime, "an output is no CUDA tensor");
      fresh->outputs.push_back(slots[output.value()].toTensor());
    }
    fresh->counters = counters;
    fresh->counters.kernels = nullptr;
  };
  fresh->graph = call.capture->capture(device.index(), body);
  const std::string problem = output_problem(fresh->outputs, call.inputs);
  FXF_CHECK(problem.empty(), Runtime, "{}", problem);
  captured_ = std::move(fresh);
  ++live_graphs;
  note_ = fmt::format("captured: {} kernels and {} ATen calls a replay", captured_->counters.launches_cuda, captured_->counters.aten_steps);
}

void PlanGraph::replay(const Call& call, const c10::Stream& stream, std::vector<c10::IValue>& outputs, RunCounters& counters) {
  Captured& captured = *captured_;
  if (captured.last && *captured.last != stream) captured.used.block(stream);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (captured.inputs[i].buffer.defined()) captured.inputs[i].buffer.copy_(call.inputs[i].toTensor(), true);
  }
  Driver::launch_graph(captured.graph->executable(), stream.native_handle());
  outputs.clear();
  for (const at::Tensor& output : captured.outputs) {
    at::Tensor result = allocate(output.sizes(), output.strides(), output.scalar_type(), output.device());
    result.copy_(output, true);
    outputs.emplace_back(std::move(result));
  }
  captured.used.record(stream);
  captured.last = stream;
  counters.launches_cuda += captured.counters.launches_cuda;
  counters.aten_steps += captured.counters.aten_steps;
  counters.view_steps += captured.counters.view_steps;
  ++counters.graph_replays;
  if (counters.kernels != nullptr) counters.kernels->insert(counters.kernels->end(), captured.names.begin(), captured.names.end());
}

}  // namespace fxfuser::executor
