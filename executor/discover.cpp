#include "executor/discover.h"

#include <ATen/Tensor.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "executor/aten_bridge.h"
#include "executor/dump.h"
#include "executor/dump_launch.h"
#include "executor/host_memory.h"
#include "executor/scalar_step.h"
#include "executor/write_back.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

/// Is a kernel that can't be made the caller's error?
bool raises(const Options& options) { return options.on_error == OnError::Raise || options.mode == Mode::Strict; }

ir::DType scalar_dtype(const c10::IValue& value) {
  return value.isDouble() ? ir::DType::Float64 : value.isBool() ? ir::DType::Bool : ir::DType::Int64;
}

ir::TensorMeta meta_of_value(const c10::IValue& value) {
  if (value.isTensor()) return meta_of(value.toTensor());
  ir::TensorMeta meta;
  meta.dtype = scalar_dtype(value);
  return meta;
}

/// What a profiler shows: the kernel and the nodes that it computes, the first few of many.
std::string range_name(const GroupPlan& group, std::size_t segment) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> names;
  for (ir::NodeId id : group.segmented.segments[segment].nodes) {
    const std::string& name = group.canonical.node(id).name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const std::string more = names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : std::string();
  names.resize(std::min(names.size(), kShown));
  return fmt::format("{} [{}{}]", group.sources[segment].name, fmt::join(names, ", "), more);
}

}  // namespace

ViewGeometry view_geometry(const ir::Graph& canonical, ir::ValueId value, ir::ValueId source) {
  const ir::TensorMeta& result = canonical.meta(value);
  ViewGeometry out{result.sizes, result.strides, 0};
  while (value != source) {
    const ir::NodeId producer = canonical.value(value).producer;
    FXF_ASSERT(producer != ir::kNoNode, "a view does not lead to its source");
    const ir::Node& node = canonical.node(producer);
    const ir::ValueId self = ir::arg(node, "self").value();
    if (node.row->op == "slice") {
      const ir::TensorMeta& meta = canonical.meta(self);
      const auto rank = static_cast<std::int64_t>(meta.sizes.size());
      std::int64_t dim = ir::arg(node, "dim").as_int();
      if (dim < 0) dim += rank;
      const std::int64_t size = meta.sizes[static_cast<std::size_t>(dim)];
      std::int64_t start = ir::arg(node, "start").is_none() ? 0 : ir::arg(node, "start").as_int();
      if (start < 0) start += size;
      out.offset += std::clamp<std::int64_t>(start, 0, size) * meta.strides[static_cast<std::size_t>(dim)];
    }
    value = self;
  }
  return out;
}

std::vector<ir::TensorMeta> Discovery::input_metas(const partitioner::Partition& partition, const Slots& slots) const {
  std::vector<ir::TensorMeta> metas;
  for (ir::ValueId value : partition.inputs) metas.push_back(meta_of_value(slots.at(value)));
  return metas;
}

bool Discovery::is_keyed(ir::ValueId value, const Slots& slots) const {
  const ir::Graph& graph = lowered_.graph;
  const ir::NodeId producer = graph.value(value).producer;
  if (producer == ir::kNoNode) return slots[value].isInt();
  const ir::Node& node = graph.node(producer);
  if (node.kind == ir::NodeKind::Scalar) {
    bool keyed = true;
    ir::for_each_value(node.args, [&](ir::ValueId arg) { keyed = keyed && is_keyed(arg, slots); });
    return keyed;
  }
  return node.target == "aten.sym_size.int" && node.args.at(0).is_value() && graph.value(node.args[0].value()).producer == ir::kNoNode;
}

std::vector<std::optional<std::int64_t>> Discovery::input_numbers(const partitioner::Partition& partition, const Slots& slots) const {
  std::vector<std::optional<std::int64_t>> numbers;
  for (ir::ValueId value : partition.inputs) {
    const bool known = slots[value].isInt() && is_keyed(value, slots);
    numbers.push_back(known ? std::optional<std::int64_t>(slots[value].toInt()) : std::nullopt);
  }
  return numbers;
}

void Discovery::prefetch() {
  if (options_.compile == CompilePolicy::Never) return;
  std::vector<GroupPlan> groups;
  std::map<int, std::vector<const codegen::KernelSource*>> wanted;  // by sm
  Options quiet = options_;
  quiet.dump.clear();
  groups.reserve(lowered_.partitions.size());
  for (std::size_t p = 0; p < lowered_.partitions.size(); ++p) {
    const partitioner::Partition& partition = lowered_.partitions[p];
    const codegen::ArchInfo arch = session_.arch(partition.device);
    if (failed_[p] || !session_.target_problem(arch.target).empty()) continue;
    std::vector<ir::TensorMeta> metas;
    for (ir::ValueId value : partition.inputs) metas.push_back(lowered_.graph.value(value).meta.value_or(ir::TensorMeta{}));
    try {
      groups.push_back(plan_group(session_, lowered_, p, metas, {}, quiet));
    } catch (const std::exception&) {
      continue;  // a forecast only: what is wrong with the real metas shows when the partition is reached
    }
    for (const codegen::KernelSource& source : groups.back().sources) wanted[arch.sm].push_back(&source);
  }
  for (const auto& [sm, sources] : wanted) {
    try {
      const auto kernels = session_.kernels.get(sources, sm);
      prefetched_.insert(prefetched_.end(), kernels.begin(), kernels.end());
    } catch (const std::exception&) {
      // The kernel at fault is found and told when its partition is reached.
    }
  }
}

std::vector<std::vector<SlotId>> Discovery::last_reads() const {
  const ir::Graph& graph = lowered_.graph;
  std::vector<std::optional<std::uint32_t>> last = last_units(lowered_);
  for (ir::ValueId value : graph.inputs) last[value].reset();
  for (const ir::Constant& constant : graph.constants) last[constant.value].reset();
  ir::for_each_value(graph.outputs, [&](ir::ValueId value) { last[value].reset(); });
  for (const ir::WriteBack& write : graph.write_backs) {
    last[write.target].reset();
    last[write.source].reset();
  }
  std::vector<std::vector<SlotId>> out(lowered_.units.size());
  for (ir::ValueId value = 0; value < last.size(); ++value) {
    if (last[value]) out[*last[value]].push_back(value);
  }
  return out;
}

Plan Discovery::run(Slots& slots, std::uint32_t first, RunCounters& counters, bool keep_all) {
  plan_.slot_count = slots.size();
  plan_.cache_version = session_.present(options_);
  plan_.steps.reserve(lowered_.units.size() + lowered_.graph.write_backs.size());
  const auto last = keep_all ? std::vector<std::vector<SlotId>>() : last_reads();
  for (std::uint32_t unit = first; unit < lowered_.units.size(); ++unit) {
    const Unit& what = lowered_.units[unit];
    const std::size_t inner = slots.size();  // from here on: values inside the unit
    if (what.partition < 0) node(what.node, unit, slots, counters);
    else if (failed_[static_cast<std::size_t>(what.partition)] && !raises(options_)) through_aten(static_cast<std::size_t>(what.partition), unit, slots, counters);
    else partition(static_cast<std::size_t>(what.partition), unit, slots, counters);
    if (keep_all) continue;
    for (SlotId slot : last[unit]) slots[slot] = c10::IValue();
    std::fill(slots.begin() + static_cast<std::ptrdiff_t>(inner), slots.end(), c10::IValue());
  }
  for (WriteBackStep& writes : write_back_steps(lowered_.graph, slots)) {
    Step step;
    step.what = std::move(writes);
    step.unit = static_cast<std::uint32_t>(lowered_.units.size());
    step.origin = Step::kAfterAll;
    step.name = "fxfuser::write_back";
    execute(std::move(step), slots, counters);
  }
  plan_.slot_count = slots.size();
  plan_.outputs = lowered_.graph.outputs;
  if (!options_.dump.empty()) dump_plan(plan_, options_);
  return std::move(plan_);
}

void Discovery::execute(Step step, Slots& slots, RunCounters& counters) {
  // Only ATen's own ops: Python, which a callable runs, takes what watches for a profiler of its own kind.
  std::optional<AllocationWatch> watch;
  if (calls_aten(step)) watch.emplace();
  const bool done = run_step(step, slots, counters);
  FXF_ASSERT(done, "a step's own guard fails where it was made");
  watched_ = watched_ && (!watch || watch->watches());
  memory_.note(step, slots, watch ? watch->most() : 0);
  plan_.steps.push_back(std::move(step));
}

void Discovery::node(ir::NodeId id, std::uint32_t unit, Slots& slots, RunCounters& counters) {
  const ir::Node& node = lowered_.graph.node(id);
  Step step;
  step.unit = unit;
  step.origin = node.origin;
  step.name = node.target;
  switch (node.kind) {
    case ir::NodeKind::Op: step.what = AtenStep{AtenCall::resolve(lowered_.graph, node)}; break;
    case ir::NodeKind::Scalar: step.what = ScalarStep{node.target, node.args, node.outputs.at(0)}; break;
    case ir::NodeKind::Callable: {
      CallableStep call;
      call.callable = std::static_pointer_cast<HostCallable>(std::get<ir::Opaque>(node.args.at(0).v).handle);
      for (std::size_t i = 1; i < node.args.size(); ++i) call.inputs.push_back(node.args[i].value());
      call.outputs = node.outputs;
      step.what = std::move(call);
      break;
    }
  }
  execute(std::move(step), slots, counters);
}

void Discovery::through_aten(std::size_t index, std::uint32_t unit, Slots& slots, RunCounters& counters) {
  for (ir::NodeId id : lowered_.partitions[index].nodes) node(id, unit, slots, counters);
}

void Discovery::partition(std::size_t index, std::uint32_t unit, Slots& slots, RunCounters& counters) {
  const partitioner::Partition& partition = lowered_.partitions[index];
  const codegen::ArchInfo arch = session_.arch(partition.device);
  const std::string problem = session_.target_problem(arch.target);
  if (!problem.empty()) {
    failed_[index] = partitioner::Reason{partitioner::ReasonCode::NoCompiler, problem};
    return through_aten(index, unit, slots, counters);
  }
  try {
    const PlannedGroup& group = planned(index, slots, counters);
    // Shapes that eager refuses, for one: ATen raises what eager raises; other shapes of this class may fuse, so the partition is
    // not given up.
    if (group.plan.refusal || group.kernels.empty()) return through_aten(index, unit, slots, counters);
    add_group(group.plan, group.kernels, index, unit, slots, counters);
  } catch (const Error& error) {
    if (raises(options_) || error.kind() == ErrorKind::Internal) throw;
    failed_[index] = partitioner::Reason{partitioner::ReasonCode::CompileFailed, error.what()};
    through_aten(index, unit, slots, counters);
  }
}

const Discovery::PlannedGroup& Discovery::planned(std::size_t index, const Slots& slots, RunCounters& counters) {
  const partitioner::Partition& partition = lowered_.partitions[index];
  PlannedGroup fresh;
  fresh.metas = input_metas(partition, slots);
  for (ir::ValueId value : partition.inputs) fresh.alignment.push_back(slots[value].isTensor() ? alignment_of(slots[value].toTensor()) : 16);
  fresh.numbers = input_numbers(partition, slots);
  const auto [first, last] = groups_.equal_range(lowered_.twin_of[index]);
  for (auto at = first; at != last; ++at) {
    if (at->second.metas == fresh.metas && at->second.alignment == fresh.alignment && at->second.numbers == fresh.numbers) return at->second;
  }
  fresh.plan = plan_group(session_, lowered_, index, fresh.metas, fresh.alignment, options_, fresh.numbers);
  if (fresh.plan.refusal && options_.mode == Mode::Strict) {
    throw_error(ErrorKind::Value, fmt::format("strictly_nvfuser can't fuse the group of {}: {}", lowered_.graph.node(partition.nodes[0]).name, to_string(*fresh.plan.refusal)));
  }
  if (!fresh.plan.refusal) fresh.kernels = kernels_of(fresh.plan, partition, counters);
  return groups_.emplace(lowered_.twin_of[index], std::move(fresh))->second;
}

std::vector<SlotId> Discovery::place_values(const GroupPlan& group, const partitioner::Partition& partition, Slots& slots) {
  const ir::Graph& canonical = group.canonical;
  constexpr SlotId kNone = 0xffffffffu;
  std::vector<SlotId> slot_of(canonical.values.size(), kNone);
  for (std::size_t i = 0; i < canonical.inputs.size(); ++i) slot_of[canonical.inputs[i]] = partition.inputs[i];
  for (std::size_t i = 0; i < canonical.outputs.size(); ++i) {
    const ir::ValueId value = canonical.outputs[i].value();
    if (slot_of[value] == kNone) slot_of[value] = partition.outputs[i];
  }
  const auto fresh = [&](ir::ValueId value) {
    if (slot_of[value] != kNone) return;
    slot_of[value] = static_cast<SlotId>(slots.size());
    slots.emplace_back();
  };
  for (const codegen::Segment& segment : group.segmented.segments) {
    for (const codegen::FusionOutput& output : segment.fusion.outputs) fresh(output.value);
  }
  for (const auto& [output, source] : group.segmented.aliases) fresh(source), fresh(output);
  return slot_of;
}

LaunchStep Discovery::launch_step(const GroupPlan& group, std::size_t segment, const std::vector<SlotId>& slot_of, std::shared_ptr<CompiledKernel> kernel) const {
  const codegen::Fusion& fusion = group.segmented.segments[segment].fusion;
  const codegen::KernelSource& source = group.sources[segment];
  LaunchStep step;
  step.kernel = std::move(kernel);
  step.target = source.target;
  step.device = fusion.device.kind == ir::DeviceKind::Cuda ? std::max<int>(fusion.device.index, 0) : -1;
  for (std::uint32_t input : source.pointer_inputs) {
    const codegen::FusionInput& from = fusion.inputs[input];
    const SlotId slot = slot_of[from.value];
    step.pointers.push_back(slot);
    step.input_bytes += bytes_of(from.meta);
    // What an ATen step or a callable made may look different at the next call.
    const ir::NodeId producer = slot < lowered_.graph.values.size() ? lowered_.graph.value(slot).producer : ir::kNoNode;
    if (producer != ir::kNoNode && lowered_.partition_of[producer] < 0) step.expected.push_back({slot, from.meta});
  }
  for (std::uint32_t input : source.scalar_inputs) {
    step.scalars.push_back(slot_of[fusion.inputs[input].value]);
    step.scalar_types.push_back(fusion.inputs[input].meta.dtype);
  }
  step.kept_bytes = step.device < 0 ? options_.host_memory << 20 : 0;
  for (const codegen::FusionOutput& output : fusion.outputs) {
    const std::int64_t bytes = storage_bytes(output.meta);
    step.outputs.push_back({slot_of[output.value], output.meta, to_scalar_type(output.meta.dtype), to_device(output.meta.device), step.kept_bytes > 0 && bytes >= kLargeBytes ? bytes : 0});
  }
  step.ints = source.ints;
  step.launches = source.launches;
  step.workspace_bytes = source.workspace_bytes;
  step.dump = launch_dump(options_);
  if (step.dump != 0) step.number = session_.kernel_number(step.kernel->name());
  for (const codegen::LaunchConfig& launch : step.launches) step.entries.push_back(step.kernel->entry(launch, step.device));
  return step;
}

namespace {

/// Kernels that don't compile are remembered with the compiler's log: the next call that wants one tells it.
void compile_quietly(Session& session, const std::vector<codegen::KernelSource>& sources, int sm) {
  for (const codegen::KernelSource& source : sources) {
    try {
      session.kernels.get({&source}, sm);
    } catch (const std::exception& error) {
      session.kernels.remember_failure(source, sm, error.what());
    }
  }
}

}  // namespace

std::vector<std::shared_ptr<CompiledKernel>> Discovery::kernels_of(const GroupPlan& group, const partitioner::Partition& partition, RunCounters& counters) {
  std::vector<const codegen::KernelSource*> sources;
  for (const codegen::KernelSource& source : group.sources) sources.push_back(&source);
  const int sm = session_.arch(partition.device).sm;
  if (options_.compile == CompilePolicy::Sync) return session_.kernels.get(sources, sm);
  auto kernels = session_.kernels.find_present(sources, sm);
  const auto missing = static_cast<std::uint64_t>(std::count(kernels.begin(), kernels.end(), nullptr));
  if (missing == 0) return kernels;
  if (options_.mode == Mode::Strict) {
    throw_error(ErrorKind::Value, fmt::format("strictly_nvfuser can't fuse the group of {}: {} of its {} kernels are not in the cache and compile is 'never'",
                                              lowered_.graph.node(partition.nodes[0]).name, missing, kernels.size()));
  }
  if (options_.compile == CompilePolicy::Async) {
    for (const codegen::KernelSource* source : sources) {
      if (const std::string why = session_.kernels.failure(*source, sm); !why.empty()) throw_error(ErrorKind::Runtime, why);
    }
    session_.background.enqueue([&session = session_, held = group.sources, sm] { compile_quietly(session, held, sm); });
  }
  plan_.missing_kernels += missing;
  counters.missing_kernels += missing;
  return {};
}

void Discovery::add_group(const GroupPlan& group, const std::vector<std::shared_ptr<CompiledKernel>>& kernels, std::size_t index, std::uint32_t unit, Slots& slots,
                          RunCounters& counters) {
  const partitioner::Partition& partition = lowered_.partitions[index];
  std::uint32_t origin = Step::kAfterAll;
  for (ir::NodeId id : partition.nodes) origin = std::min(origin, lowered_.graph.node(id).origin);
  const std::vector<SlotId> slot_of = place_values(group, partition, slots);
  std::vector<LaunchStep> launches;
  for (std::size_t i = 0; i < group.sources.size(); ++i) launches.push_back(launch_step(group, i, slot_of, kernels[i]));
  for (std::size_t i = 0; i < launches.size(); ++i) {
    Step step;
    step.unit = unit;
    step.origin = origin;
    step.name = range_name(group, i);
    step.what = std::move(launches[i]);
    execute(std::move(step), slots, counters);
  }
  const auto view = [&](SlotId source, SlotId target, const ViewGeometry& geometry, bool same) {
    Step step;
    step.unit = unit;
    step.origin = origin;
    step.name = "fxfuser::view";
    step.what = ViewStep{source, target, geometry.sizes, geometry.strides, geometry.offset, same};
    execute(std::move(step), slots, counters);
  };
  for (const auto& [output, source] : group.segmented.aliases) {
    if (slot_of[output] != slot_of[source]) view(slot_of[source], slot_of[output], view_geometry(group.canonical, output, source), false);
  }
  // A value that is returned under two names, or an input that is returned as it is: views are nodes of the canonical graph.
  for (std::size_t i = 0; i < group.canonical.outputs.size(); ++i) {
    const ir::ValueId value = group.canonical.outputs[i].value();
    if (slot_of[value] == partition.outputs[i]) continue;
    view(slot_of[value], partition.outputs[i], view_geometry(group.canonical, value, value), true);
  }
}

}  // namespace fxfuser::executor
