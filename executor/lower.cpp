#include "executor/lower.h"

#include <algorithm>
#include <chrono>
#include <queue>

#include "executor/dump.h"
#include "executor/twins.h"
#include "partitioner/decompose.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

using partitioner::Partition;

/// Units in topological order; among those that are ready the one whose last node comes first in the original graph.
std::vector<Unit> order_units(const LoweredGraph& lowered) {
  const ir::Graph& graph = lowered.graph;
  std::vector<std::uint32_t> unit_of(graph.nodes.size());
  std::vector<Unit> units;
  std::vector<std::uint32_t> last;  // origin of the last node of each unit
  for (std::size_t p = 0; p < lowered.partitions.size(); ++p) {
    units.push_back({static_cast<std::int32_t>(p), ir::kNoNode});
    last.push_back(0);
    for (ir::NodeId id : lowered.partitions[p].nodes) {
      unit_of[id] = static_cast<std::uint32_t>(p);
      last.back() = std::max(last.back(), graph.nodes[id].origin);
    }
  }
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (lowered.partition_of[id] >= 0) continue;
    unit_of[id] = static_cast<std::uint32_t>(units.size());
    units.push_back({-1, id});
    last.push_back(graph.nodes[id].origin);
  }
  std::vector<std::vector<std::uint32_t>> followers(units.size());
  std::vector<std::uint32_t> waiting(units.size(), 0);
  const auto edge = [&](std::uint32_t from, std::uint32_t to) {
    if (from == to) return;
    followers[from].push_back(to);
    ++waiting[to];
  };
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    ir::for_each_value(graph.nodes[id].args, [&](ir::ValueId value) {
      const ir::NodeId producer = graph.value(value).producer;
      if (producer != ir::kNoNode) edge(unit_of[producer], unit_of[id]);
    });
    for (ir::NodeId before : graph.nodes[id].after) edge(unit_of[before], unit_of[id]);
  }
  using Ready = std::pair<std::uint32_t, std::uint32_t>;  // (last, unit)
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
    if (waiting[unit] == 0) ready.emplace(last[unit], unit);
  }
  std::vector<Unit> out;
  while (!ready.empty()) {
    const std::uint32_t unit = ready.top().second;
    ready.pop();
    out.push_back(units[unit]);
    for (std::uint32_t next : followers[unit]) {
      if (--waiting[next] == 0) ready.emplace(last[next], next);
    }
  }
  FXF_ASSERT(out.size() == units.size(), "the partitions form a cycle");
  return out;
}

}  // namespace

LoweredGraph lower(Session& session, ir::Graph graph, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  LoweredGraph out;
  out.graph = std::move(graph);
  session.ops.bind(out.graph);
  out.support = session.capability.classify_all(out.graph, options.skip_ops);
  if (options.mode == Mode::Aten) {
    for (partitioner::Support& support : out.support) support = partitioner::Support::no(partitioner::ReasonCode::Denied, "executor='aten' fuses nothing");
  }
  out.partitions = partitioner::propose(out.graph, out.support);
  partitioner::PartitionOptions pruning;
  pruning.allow_single_op = options.allow_single_op_fusion || options.mode == Mode::Strict;
  for (partitioner::Pruned& pruned : partitioner::prune(out.graph, out.partitions, pruning)) out.support[pruned.node].refusal = std::move(pruned.reason);
  out.partition_of.assign(out.graph.nodes.size(), -1);
  for (std::size_t p = 0; p < out.partitions.size(); ++p) {
    for (ir::NodeId id : out.partitions[p].nodes) out.partition_of[id] = static_cast<std::int32_t>(p);
  }
  out.twin_of = twins_of(out.graph, out.partitions);
  out.units = order_units(out);
  out.partition_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.dump.empty()) dump_lowered(out, options);
  return out;
}

GroupPlan plan_group(Session& session, const LoweredGraph& lowered, std::size_t index, const std::vector<ir::TensorMeta>& metas,
                     const std::vector<int>& alignment, const Options& options, const std::vector<std::optional<std::int64_t>>& numbers, const codegen::ArchInfo* machine) {
  GroupPlan out;
  const Partition& partition = lowered.partitions[index];
  if (!options.dump.empty()) dump_definition(session, lowered, partition, metas, options);
  try {
    out.canonical = partitioner::simplify(partitioner::decompose(lowered.graph, partition, metas, session.ops, numbers));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) throw;
    out.refusal = partitioner::Reason{partitioner::ReasonCode::Argument, error.what()};
    return out;
  }
  const codegen::ArchInfo arch = machine != nullptr ? *machine : session.arch(partition.device);
  codegen::ScheduleOptions scheduling;
  scheduling.deterministic = options.deterministic;
  scheduling.input_alignment = alignment;  // by input of the canonical graph
  out.segmented = codegen::segment(out.canonical, arch, scheduling);
  if (out.segmented.refusal) {
    out.refusal = out.segmented.refusal;
    if (!options.dump.empty()) dump_group(out, arch, options);
    return out;
  }
  for (codegen::Segment& segment : out.segmented.segments) {
    segment.fusion.eager_rounding = options.rounding == Rounding::Eager;
    out.sources.push_back(codegen::emit(segment.fusion, segment.schedule, arch));
    if (!options.fma) out.sources.back().eager_rounding = true;
  }
  if (!options.dump.empty()) dump_group(out, arch, options);
  return out;
}

}  // namespace fxfuser::executor
