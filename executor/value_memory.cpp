#include "executor/value_memory.h"

#include <ATen/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>

#include "executor/plan.h"

namespace fxfuser::executor {
namespace {

class Counter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    alive_ += size;
    most = std::max(most, alive_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t most = 0;

 private:
  std::int64_t alive_ = 0;
};

bool has_memory(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage(); }

bool share(const c10::IValue& a, const c10::IValue& b) { return has_memory(a) && has_memory(b) && a.toTensor().is_alias_of(b.toTensor()); }

}  // namespace

bool calls_aten(const Step& step) {
  const auto* aten = std::get_if<AtenStep>(&step.what);
  return aten != nullptr && aten->call.name().starts_with("aten.");
}

struct AllocationWatch::State {
  std::shared_ptr<Counter> counter = std::make_shared<Counter>();
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, counter};
};

AllocationWatch::AllocationWatch() {
  if (c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) == nullptr) state_ = std::make_unique<State>();
}

AllocationWatch::~AllocationWatch() = default;

std::int64_t AllocationWatch::most() const { return state_ == nullptr ? 0 : state_->counter->most; }

ValueMemory::Value& ValueMemory::at(SlotId slot) {
  if (slot >= values_.size()) values_.resize(slot + 1);
  return values_[slot];
}

void ValueMemory::note_result(SlotId slot, const std::vector<SlotId>& others, const Slots& slots) {
  const auto shared = std::find_if(others.begin(), others.end(), [&](SlotId other) { return other != slot && share(slots[slot], slots[other]); });
  if (shared != others.end()) at(slot).root = root_of(*shared);
  else if (has_memory(slots[slot])) at(slot) = {slot, static_cast<std::int64_t>(slots[slot].toTensor().storage().nbytes()), false, 0};
}

void ValueMemory::note_call(const Step& step, bool keeps, std::int64_t most, const Slots& slots) {
  std::vector<SlotId> others;
  const auto collect = [&](SlotId slot) { others.push_back(slot); };
  for_each_read(step, collect);
  const std::size_t inputs = others.size();
  for_each_write(step, [&](SlotId slot) {
    note_result(slot, others, slots);
    others.push_back(slot);
    if (root_of(slot) == slot) most -= of(slot).bytes;
    keeps = keeps || !(slots[slot].isTensor() || slots[slot].isScalar() || slots[slot].isNone());
  });
  if (others.size() > inputs) at(others[inputs]).scratch = std::max<std::int64_t>(most, 0);
  if (!keeps) return;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (const SlotId root = root_of(others[i]); root != kUnknown) at(root).lent = true;
  }
}

void ValueMemory::note(const Step& step, const Slots& slots, std::int64_t most) {
  if (std::holds_alternative<LaunchStep>(step.what)) for_each_write(step, [&](SlotId slot) { note_result(slot, {}, slots); });
  else if (const auto* view = std::get_if<ViewStep>(&step.what)) at(view->target).root = root_of(view->source);
  else if (std::holds_alternative<AtenStep>(step.what) || std::holds_alternative<CallableStep>(step.what)) note_call(step, !calls_aten(step), most, slots);
}

}  // namespace fxfuser::executor
