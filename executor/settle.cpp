#include "executor/settle.h"

#include <ATen/Tensor.h>

#include <map>
#include <set>

#include "executor/scalar_step.h"
#include "executor/write_back.h"

namespace fxfuser::executor {
namespace {

/// The nodes that `value` needs and whose results are gone, ascending; nullopt when one of them is no plain op.
std::optional<std::set<ir::NodeId>> needed_nodes(const ir::Graph& graph, const Slots& slots, ir::ValueId value) {
  std::set<ir::NodeId> needed;
  std::vector<ir::ValueId> open{value};
  while (!open.empty()) {
    const ir::ValueId next = open.back();
    open.pop_back();
    if (!slots[next].isNone()) continue;
    const ir::NodeId producer = graph.value(next).producer;
    if (producer == ir::kNoNode) continue;  // an input that is None
    const ir::Node& node = graph.node(producer);
    // A node that writes, or one without a row, may do more than compute its result.
    if (node.kind == ir::NodeKind::Callable || (node.kind == ir::NodeKind::Op && node.row == nullptr)) return std::nullopt;
    if (needed.insert(producer).second) ir::for_each_value(node.args, [&](ir::ValueId read) { open.push_back(read); });
  }
  return needed;
}

bool compute(const ir::Graph& graph, Slots& slots, ir::ValueId value) {
  const auto needed = needed_nodes(graph, slots, value);
  if (!needed) return false;
  for (ir::NodeId id : *needed) {
    const ir::Node& node = graph.node(id);
    if (node.kind == ir::NodeKind::Scalar) slots[node.outputs.at(0)] = run_scalar(node.target, node.args, slots);
    else AtenCall::resolve(graph, node).run(slots);
  }
  return slots[value].isTensor();
}

struct Written {
  ir::ValueId result = ir::kNoValue;
  std::uint32_t versions = 0;
};

}  // namespace

void settle_writes(const ir::Graph& graph, Slots& slots, std::uint32_t origin) noexcept {
  std::map<ir::ValueId, Written> last;  // by written value: what it holds before `origin`
  for (const ir::Write& write : graph.writes) {
    if (graph.node(write.node).origin >= origin) continue;
    Written& written = last[write.target];
    written.result = write.result;
    written.versions += write.counted ? 1 : 0;
  }
  // All are computed before the first is written: they read the old values.
  std::vector<std::pair<ir::ValueId, Written>> ready;
  for (const auto& [target, written] : last) {
    try {
      if (compute(graph, slots, written.result)) ready.emplace_back(target, written);
    } catch (...) {
      continue;
    }
  }
  for (const auto& [target, written] : ready) {
    try {
      write_back(slots[target].toTensor(), slots[written.result].toTensor(), written.versions);
    } catch (...) {
      continue;
    }
  }
}

}  // namespace fxfuser::executor
