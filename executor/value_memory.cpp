#include "executor/value_memory.h"

#include <ATen/Tensor.h>

#include <algorithm>

#include "executor/plan.h"

namespace fxfuser::executor {
namespace {

bool has_memory(const c10::IValue& value) { return value.isTensor() && value.toTensor().defined() && value.toTensor().has_storage(); }

bool share(const c10::IValue& a, const c10::IValue& b) { return has_memory(a) && has_memory(b) && a.toTensor().is_alias_of(b.toTensor()); }

}  // namespace

ValueMemory::Value& ValueMemory::at(SlotId slot) {
  if (slot >= values_.size()) values_.resize(slot + 1);
  return values_[slot];
}

void ValueMemory::note_result(SlotId slot, const std::vector<SlotId>& others, const Slots& slots) {
  const auto shared = std::find_if(others.begin(), others.end(), [&](SlotId other) { return other != slot && share(slots[slot], slots[other]); });
  if (shared != others.end()) at(slot).root = root_of(*shared);
  else if (has_memory(slots[slot])) at(slot) = {slot, static_cast<std::int64_t>(slots[slot].toTensor().storage().nbytes()), false};
}

void ValueMemory::note_call(const Step& step, bool keeps, const Slots& slots) {
  std::vector<SlotId> others;
  const auto collect = [&](SlotId slot) { others.push_back(slot); };
  for_each_read(step, collect);
  const std::size_t inputs = others.size();
  for_each_write(step, [&](SlotId slot) {
    note_result(slot, others, slots);
    others.push_back(slot);
    keeps = keeps || !(slots[slot].isTensor() || slots[slot].isScalar() || slots[slot].isNone());
  });
  if (!keeps) return;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (const SlotId root = root_of(others[i]); root != kUnknown) at(root).lent = true;
  }
}

void ValueMemory::note(const Step& step, const Slots& slots) {
  if (std::holds_alternative<LaunchStep>(step.what)) for_each_write(step, [&](SlotId slot) { note_result(slot, {}, slots); });
  else if (const auto* view = std::get_if<ViewStep>(&step.what)) at(view->target).root = root_of(view->source);
  else if (const auto* aten = std::get_if<AtenStep>(&step.what)) note_call(step, !aten->call.name().starts_with("aten."), slots);
  else if (std::holds_alternative<CallableStep>(step.what)) note_call(step, true, slots);
}

}  // namespace fxfuser::executor
