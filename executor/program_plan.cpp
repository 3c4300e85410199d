// What a plan is given when its first run has found its steps: how long values live, its graph, its place among the program's plans.

#include <algorithm>

#include "executor/plan_graph.h"
#include "executor/plan_memory.h"
#include "executor/program.h"

namespace fxfuser::executor {
namespace {

constexpr std::string_view kInputGuards = "torch.export.guards";  // as the importer names it

/// torch.export's check of the inputs' sizes, dtypes and whole numbers: it said yes to this plan's key, which holds all of them.
bool is_input_check(const Step& step) { return step.name == kInputGuards && std::holds_alternative<CallableStep>(step.what); }

}  // namespace

std::vector<std::pair<SlotId, std::optional<std::uint32_t>>> ProgramImpl::last_units_of_inputs(const LoweredGraph& lowered, const Plan& plan) const {
  std::vector<std::optional<std::uint32_t>> last = last_units(lowered);
  for (ir::ValueId input : graph_.inputs) last[input] = last[input].value_or(0);
  for (const ir::Attr& attr : plan.outputs) {
    if (attr.is_value() && attr.value() < last.size()) last[attr.value()].reset();
  }
  std::vector<std::pair<SlotId, std::optional<std::uint32_t>>> out;
  for (ir::ValueId input : graph_.inputs) out.emplace_back(input, last[input]);
  return out;
}

void ProgramImpl::finish_plan(Plan& plan, const Call& call, const ValueMemory* memory) {
  const bool has_reals = std::any_of(call.inputs.begin(), call.inputs.end(), [](const c10::IValue& input) { return input.isDouble(); });
  if (!has_reals) std::erase_if(plan.steps, is_input_check);
  std::vector<bool> keep = keep_;
  keep.resize(plan.slot_count, false);
  for (const ir::Attr& attr : plan.outputs) {
    if (attr.is_value()) keep[attr.value()] = true;
  }
  set_lifetimes(plan, keep);
  if (memory != nullptr) plan_memory(plan, *memory, keep);
  plan.brief = is_brief(plan);
  plan.steps.shrink_to_fit();  // kept for long, and for many shapes
  if (call.options.cuda_graph) {
    plan.graph = std::make_shared<PlanGraph>();
    const std::lock_guard<std::mutex> lock(mutex_);
    last_graph_ = plan.graph;
  }
  if (call.options.use_python_fusion_cache) plans_.remember(call.signature, call.options, std::make_shared<const Plan>(std::move(plan)));
}

}  // namespace fxfuser::executor
