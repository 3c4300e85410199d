#include "executor/write_back.h"

#include <ATen/Tensor.h>
#include <ATen/ops/_foreach_copy.h>

#include <algorithm>

namespace fxfuser::executor {
namespace {

/// Whether a value may be an input's memory under another name: then the order of the copies matters.
bool shares_an_input(const ir::Graph& graph, const Slots& slots, const at::Tensor& source) {
  const auto shares = [&](SlotId slot) { return slots[slot].isTensor() && source.is_alias_of(slots[slot].toTensor()); };
  if (std::any_of(graph.inputs.begin(), graph.inputs.end(), shares)) return true;
  return std::any_of(graph.constants.begin(), graph.constants.end(), [&](const ir::Constant& constant) { return shares(constant.value); });
}

bool fits(const WriteBackStep& step, const Slots& slots, const at::Tensor& target, const at::Tensor& source) {
  const at::Tensor& first = slots[step.targets[0]].toTensor();
  return first.device() == target.device() && first.scalar_type() == target.scalar_type() && source.device() == target.device() && source.scalar_type() == target.scalar_type();
}

}  // namespace

std::vector<WriteBackStep> write_back_steps(const ir::Graph& graph, const Slots& slots) {
  std::vector<WriteBackStep> alone, together;
  for (const ir::WriteBack& write : graph.write_backs) {
    const at::Tensor &target = slots[write.target].toTensor(), &source = slots[write.source].toTensor();
    if (shares_an_input(graph, slots, source)) {
      alone.push_back({{write.target}, {write.source}});
      continue;
    }
    const auto step = std::find_if(together.begin(), together.end(), [&](const WriteBackStep& made) { return fits(made, slots, target, source); });
    if (step == together.end()) {
      together.push_back({{write.target}, {write.source}});
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
    slots[step.targets[0]].toTensor().copy_(slots[step.sources[0]].toTensor());
    return;
  }
  std::vector<at::Tensor> targets, sources;
  for (SlotId slot : step.targets) targets.push_back(slots[slot].toTensor());
  for (SlotId slot : step.sources) sources.push_back(slots[slot].toTensor());
  at::_foreach_copy_(targets, sources);
}

}  // namespace fxfuser::executor
