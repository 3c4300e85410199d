#include "executor/lower.h"

#include <chrono>

#include "executor/dump.h"
#include "executor/order_units.h"
#include "executor/twins.h"
#include "partitioner/decompose.h"
#include "partitioner/ir/error.h"
#include "partitioner/random.h"

namespace fxfuser::executor {

using partitioner::Partition;

std::vector<std::optional<std::uint32_t>> last_units(const LoweredGraph& lowered) {
  std::vector<std::optional<std::uint32_t>> last(lowered.graph.values.size());
  const auto touch = [&](ir::NodeId id, std::uint32_t unit) {
    const ir::Node& node = lowered.graph.node(id);
    ir::for_each_value(node.args, [&](ir::ValueId value) { last[value] = unit; });
    for (ir::ValueId value : node.outputs) last[value] = unit;
  };
  for (std::uint32_t u = 0; u < lowered.units.size(); ++u) {
    const Unit& unit = lowered.units[u];
    if (unit.partition < 0) touch(unit.node, u);
    else for (ir::NodeId id : lowered.partitions[static_cast<std::size_t>(unit.partition)].nodes) touch(id, u);
  }
  return last;
}

LoweredGraph lower(Session& session, ir::Graph graph, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  LoweredGraph out;
  out.graph = options.fused_rng ? partitioner::with_seeds(std::move(graph), session.ops) : std::move(graph);
  session.ops.bind(out.graph);
  out.support = session.capability.classify_all(out.graph, options.skip_ops);
  if (options.mode == Mode::Aten) {
    for (partitioner::Support& support : out.support) support = partitioner::Support::no(partitioner::ReasonCode::Denied, "executor='aten' fuses nothing");
  }
  out.partitions = partitioner::propose(out.graph, out.support);
  partitioner::PartitionOptions pruning;
  pruning.allow_single_op = options.allow_single_op_fusion || options.mode == Mode::Strict;
  for (partitioner::Pruned& pruned : partitioner::prune(out.graph, out.partitions, pruning)) out.support[pruned.node].refusal = std::move(pruned.reason);
  join_equal_numbers(out.graph, out.partitions);
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
