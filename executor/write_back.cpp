#include "executor/write_back.h"

#include <ATen/Tensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_foreach_copy.h>

#include <algorithm>
#include <optional>
#include <span>

namespace fxfuser::executor {
namespace {

/// Whether a value may be an input's memory under another name: then the order of the copies matters.
bool shares_an_input(const ir::Graph& graph, const Slots& slots, const at::Tensor& source) {
  const auto shares = [&](SlotId slot) { return slots[slot].isTensor() && source.is_alias_of(slots[slot].toTensor()); };
  if (std::any_of(graph.inputs.begin(), graph.inputs.end(), shares)) return true;
  return std::any_of(graph.constants.begin(), graph.constants.end(), [&](const ir::Constant& constant) { return shares(constant.value); });
}

bool fits(const WriteBackStep& step, const Slots& slots, const ir::WriteBack& write) {
  const at::Tensor &first = slots[step.targets[0]].toTensor(), &target = slots[write.target].toTensor(), &source = slots[write.source].toTensor();
  const auto alike = [&](const at::Tensor& tensor) { return tensor.device() == first.device() && tensor.scalar_type() == first.scalar_type(); };
  return step.versions == write.versions && alike(target) && alike(source);
}

/// Runs `copy`, a copy that raises each target's counter by one, so that it rises by `versions`.
template <typename Copy>
void counted_copy(std::uint32_t versions, std::span<const at::Tensor> targets, const Copy& copy) {
  std::optional<at::AutoDispatchBelowADInplaceOrView> unseen;
  if (versions == 0) unseen.emplace();  // a write that eager's counter does not see
  copy();
  if (versions < 2) return;
  for (const at::Tensor& target : targets) raise_version(target, versions - 1);
}

}  // namespace

std::vector<WriteBackStep> write_back_steps(const ir::Graph& graph, const Slots& slots) {
  std::vector<WriteBackStep> alone, together;
  for (const ir::WriteBack& write : graph.write_backs) {
    if (shares_an_input(graph, slots, slots[write.source].toTensor())) {
      alone.push_back({{write.target}, {write.source}, write.versions});
      continue;
    }
    const auto step = std::find_if(together.begin(), together.end(), [&](const WriteBackStep& made) { return fits(made, slots, write); });
    if (step == together.end()) {
      together.push_back({{write.target}, {write.source}, write.versions});
    } else {
      step->targets.push_back(write.target);
      step->sources.push_back(write.source);
    }
  }
  alone.insert(alone.end(), together.begin(), together.end());  // what reads an input's old contents comes first
  return alone;
}

void run_write_back(const WriteBackStep& step, const Slots& slots) {
  if (step.targets.size() == 1) {
    write_back(slots[step.targets[0]].toTensor(), slots[step.sources[0]].toTensor(), step.versions);
    return;
  }
  std::vector<at::Tensor> targets, sources;
  for (SlotId slot : step.targets) targets.push_back(slots[slot].toTensor());
  for (SlotId slot : step.sources) sources.push_back(slots[slot].toTensor());
  counted_copy(step.versions, targets, [&] { at::_foreach_copy_(targets, sources); });
}

void raise_version(const at::Tensor& tensor, std::uint32_t times) {
  if (tensor.is_inference()) return;
  for (std::uint32_t i = 0; i < times; ++i) tensor.unsafeGetTensorImpl()->bump_version();
}

void write_back(const at::Tensor& target, const at::Tensor& source, std::uint32_t versions) {
  counted_copy(versions, {&target, 1}, [&] { target.copy_(source); });
}

}  // namespace fxfuser::executor
