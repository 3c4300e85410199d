#include "executor/program.h"

#include <ATen/Tensor.h>

#include <algorithm>

#include "executor/aten_bridge.h"
#include "executor/discover.h"
#include "executor/forecast.h"
#include "executor/plan_graph.h"
#include "executor/propagate.h"
#include "executor/settle.h"
#include "executor/write_back.h"
#include "partitioner/functionalize.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

constexpr std::size_t kMaxClasses = 16;

std::string order_of(const at::Tensor& tensor) { return tensor.is_contiguous() ? "" : ir::memory_order(meta_of(tensor)); }

/// The host's lock is given up while this lives.
class Unlocked {
 public:
  explicit Unlocked(HostLock* lock) : lock_(lock) {
    if (lock_ != nullptr) lock_->give_up();
  }
  ~Unlocked() {
    if (lock_ != nullptr) lock_->take_back();
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  HostLock* lock_;
};

}  // namespace

ProgramImpl::ProgramImpl(Session& session, ImportedGraph imported) : session_(session) {
  session.ops.bind(imported.graph);
  partitioner::Functionalized functional = partitioner::functionalize(imported.graph, imported.alias, session.ops);
  graph_ = std::move(functional.graph);
  for (const ir::WriteBack& write : graph_.write_backs) {
    if (std::find(functional.written.begin(), functional.written.end(), write.target) == functional.written.end()) functional.written.push_back(write.target);
  }
  for (ir::ValueId value : functional.written) {
    for (std::size_t i = 0; i < graph_.inputs.size() + graph_.constants.size(); ++i) {
      if (input_at(graph_, i) == value) written_.push_back(i);
    }
  }
  session.ops.bind(graph_);
  keep_.assign(graph_.values.size(), false);
  input_slots_ = graph_.inputs;
  for (const ir::Constant& constant : graph_.constants) input_slots_.push_back(constant.value);
  for (SlotId slot : input_slots_) keep_[slot] = true;
}

Slots ProgramImpl::frame(std::span<const c10::IValue> inputs, std::size_t slots) const {
  Slots out(slots);
  for (std::size_t i = 0; i < inputs.size(); ++i) out[input_slots_[i]] = inputs[i];
  return out;
}

void ProgramImpl::collect(std::span<const ir::Attr> from, Slots& slots, std::vector<c10::IValue>& outputs) const {
  outputs.clear();
  outputs.reserve(from.size());
  for (const ir::Attr& attr : from) {
    if (attr.is_value()) outputs.push_back(slots[attr.value()]);
    else outputs.push_back(to_ivalue(attr, c10::TypePtr(c10::NumberType::get()), slots));
  }
  if (!graph_.versions.empty()) raise_versions(from, outputs);
}

/// A result that eager would have written in place has the version that those writes left.
void ProgramImpl::raise_versions(std::span<const ir::Attr> from, const std::vector<c10::IValue>& outputs) const {
  std::vector<ir::ValueId> seen;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is_value() || from[i].value() >= graph_.versions.size() || graph_.versions[from[i].value()] == 0) continue;
    if (!outputs[i].isTensor() || std::find(seen.begin(), seen.end(), from[i].value()) != seen.end()) continue;
    seen.push_back(from[i].value());
    raise_version(outputs[i].toTensor(), graph_.versions[from[i].value()]);
  }
}

Plan ProgramImpl::run_plain(Slots& slots, RunCounters& counters, bool keep_all) const {
  LoweredGraph plain;  // no partitions
  plain.graph = graph_;
  plain.partition_of.assign(graph_.nodes.size(), -1);
  for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) plain.units.push_back({-1, id});
  std::vector<std::optional<partitioner::Reason>> failed;
  const Options options;
  return Discovery(session_, plain, failed, options).run(slots, 0, counters, keep_all);
}

void ProgramImpl::run_aten(std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs) {
  check_count(inputs.size());
  RunCounters counters;
  Slots slots = frame(inputs, graph_.values.size());
  run_plain(slots, counters);
  collect(graph_.outputs, slots, outputs);
  session_.count_steps({counters.launches_cuda, counters.launches_host, counters.aten_steps, counters.view_steps}, nullptr);
}

void ProgramImpl::check_count(std::size_t given) const {
  const std::size_t expected = graph_.inputs.size() + graph_.constants.size();
  FXF_CHECK(given == expected, Type, "{} inputs, {} were given", expected, given);
}

ir::Graph ProgramImpl::record(Slots& slots, RunCounters& counters) const {
  ir::Graph graph = graph_;
  run_plain(slots, counters, true);
  for (ir::ValueId id = 0; id < graph.values.size(); ++id) {
    ir::Value& value = graph.values[id];
    if (slots[id].isTensor() && slots[id].toTensor().defined()) {
      value.kind = ir::ValueKind::Tensor;
      value.meta = meta_of(slots[id].toTensor());
    } else if (slots[id].isScalar()) {
      value.kind = ir::ValueKind::Scalar;
      value.meta.reset();
    } else {
      value.kind = ir::ValueKind::Other;
      value.meta.reset();
    }
  }
  return graph;
}

namespace {

/// What of an input decides a class.
std::string class_key(const Options& options, std::span<const c10::IValue> inputs) {
  std::string key = fmt::format("{}{}{}{}", static_cast<int>(options.mode), options.allow_single_op_fusion, options.fused_rng, static_cast<int>(options.rounding));
  for (const std::string& op : options.skip_ops) key += "-" + op;
  for (const c10::IValue& input : inputs) {
    if (!input.isTensor()) {
      key += input.isNone() ? ";n" : ";s";
      continue;
    }
    const at::Tensor& tensor = input.toTensor();
    key += fmt::format(";{},{},{},{}", static_cast<int>(tensor.scalar_type()), tensor.dim(), ir::to_string(to_device(tensor.device())), order_of(tensor));
  }
  return key;
}

InputMetas metas_of(std::span<const c10::IValue> inputs) {
  InputMetas metas(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].isTensor()) metas[i] = meta_of(inputs[i].toTensor());
  }
  return metas;
}

/// Numbers that reach a partition need a dtype.
void give_scalars_types(ir::Graph& graph, std::span<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    ir::Value& value = graph.values[graph.inputs[i]];
    if (inputs[i].isTensor()) continue;
    value.kind = inputs[i].isNone() ? ir::ValueKind::Other : ir::ValueKind::Scalar;
  }
}

}  // namespace

void ProgramImpl::check_strict(const LoweredGraph& lowered) const {
  std::string text;
  std::size_t count = 0, computes = 0;
  for (ir::NodeId id = 0; id < lowered.graph.nodes.size(); ++id) {
    const ir::Node& node = lowered.graph.node(id);
    if (node.kind == ir::NodeKind::Scalar || (node.kind == ir::NodeKind::Callable && node.outputs.empty())) continue;
    if (node.target == "aten.sym_size.int" || node.target == "aten.sym_numel.default" || node.target == "aten.sym_stride.int") continue;  // facts of a tensor, not work
    ++computes;
    const partitioner::Support& support = lowered.support[id];
    if (support.ok() || support.refusal->code == partitioner::ReasonCode::MetadataOnly) continue;
    ++count;
    text += fmt::format("\n  {} ({}): {}", node.name, node.target, to_string(*support.refusal));
  }
  FXF_CHECK(count == 0, Value, "strictly_nvfuser can't take {} of {} nodes:{}", count, computes, text);
}

std::shared_ptr<ProgramImpl::Class> ProgramImpl::class_of(const Options& options, std::span<const c10::IValue> inputs, std::string& miss) {
  const std::string key = class_key(options, inputs);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = classes_.begin(); at != classes_.end(); ++at) {
      if (at->first != key) continue;
      classes_.splice(classes_.begin(), classes_, at);
      miss = "sizes";
      return at->second;
    }
  }
  std::optional<ir::Graph> graph;
  if (forecast_fits(graph_, metas_of(inputs))) {
    graph = graph_;
    give_scalars_types(*graph, inputs);
  } else {
    graph = propagate(graph_, inputs);
  }
  if (!graph) return nullptr;
  auto made = std::make_shared<Class>();
  made->lowered = std::make_shared<LoweredGraph>(lower(session_, std::move(*graph), options));
  made->failed.resize(made->lowered->partitions.size());
  miss = "dtypes, ranks, devices or memory orders";
  const std::lock_guard<std::mutex> lock(mutex_);
  classes_.emplace_front(key, made);
  if (classes_.size() > kMaxClasses) classes_.pop_back();
  return made;
}

void ProgramImpl::tell_target_problems(const LoweredGraph& lowered, RunResult& result) {
  for (const partitioner::Partition& partition : lowered.partitions) {
    const codegen::Target target = partition.device.kind == ir::DeviceKind::Cuda ? codegen::Target::Cuda : codegen::Target::Host;
    const std::string problem = session_.target_problem(target);
    if (problem.empty()) {
      for (const std::string& note : session_.machine_notes(target)) {
        if (session_.tell_once(note)) result.warnings.push_back(note);
      }
    } else if (session_.tell_once(problem)) {
      result.warnings.push_back(fmt::format("{} kernels can't be made here, fallback to aten executor: {}", target == codegen::Target::Cuda ? "CUDA" : "host", problem));
    }
  }
  if (lowered.partitions.empty() && !lowered.graph.nodes.empty() && tell_once(told_nothing_fused_)) {
    result.nothing_fused = "nothing is fused: what this graph computes is not supported by nvFuser, fallback to aten executor (fxfuser.explain says why for each node)";
  }
}

namespace {

/// What a compiler's message says in a line: its head, and the first line that is an error.
std::string first_error(const std::string& message) {
  const std::size_t head = message.find('\n'), error = message.find("error", head == std::string::npos ? message.size() : head);
  if (error == std::string::npos) return message.substr(0, head);
  const std::size_t begin = message.rfind('\n', error) + 1;
  return message.substr(0, head) + " " + message.substr(begin, message.find('\n', begin) - begin);
}

}  // namespace

void ProgramImpl::tell_failures(const Class& held, RunResult& result) {
  for (const auto& failed : held.failed) {
    if (!failed || failed->code != partitioner::ReasonCode::CompileFailed) continue;
    const std::string why = first_error(failed->detail);
    if (session_.tell_once("compile: " + why)) result.warnings.push_back("a generated kernel does not compile, fallback to aten executor for its group: " + why);
  }
}

RunResult ProgramImpl::run(const Options& options, std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs, HostLock* lock) {
  Call call{options, inputs, outputs, {}, {}, {}};
  return run_call(call, lock);
}

RunResult ProgramImpl::run_boxed(const Options& options, std::vector<c10::IValue>& inputs, std::vector<c10::IValue>& outputs, HostLock* lock) {
  Call call{options, inputs, outputs, {}, {}, {}};
  if (written_.empty()) call.given = &inputs;  // writes are settled from the inputs when a step raises
  return run_call(call, lock);
}

RunResult ProgramImpl::run_call(Call& call, HostLock* lock) {
  const Options& options = call.options;
  const std::span<const c10::IValue> inputs = call.inputs;
  check_count(inputs.size());
  RunResult result;
  if (!sign(inputs, call.signature, result.reason)) return refuse(options, std::move(result));
  if (!written_.empty() && writes_overlap(inputs, written_)) {
    result.reason = "an input that is written shares memory with another, or with itself";
    return refuse(options, std::move(result));
  }
  const auto plan = options.use_python_fusion_cache ? plans_.find(call.signature, options, session_.present(options)) : nullptr;
  const bool brief = plan != nullptr && plan->brief && plan->graph == nullptr;  // a capture takes the lock while others wait for the graph
  const Unlocked unlocked(brief ? nullptr : lock);
  if (session_.recording) call.counters.kernels = &call.names;
  std::string miss;
  std::optional<PlanKey> before;
  if (plan != nullptr) {
    miss = run_plan(*plan, call);
  } else {
    before = plans_.latest();
    miss = run_miss(call, result);
  }
  if (!miss.empty()) note_miss({plan == nullptr && !before ? "first call" : miss, std::move(before), {{call.signature.begin(), call.signature.end()}, options}});
  session_.count_call(miss);
  session_.count_steps({call.counters.launches_cuda, call.counters.launches_host, call.counters.aten_steps, call.counters.view_steps, call.counters.missing_kernels, call.counters.graph_replays}, call.counters.kernels);
  return result;
}

RunResult ProgramImpl::refuse(const Options& options, RunResult&& result) {
  result.status = RunStatus::RunOriginal;
  if (options.mode == Mode::Strict) throw_error(ErrorKind::Value, "strictly_nvfuser can't take this call: " + result.reason);
  if (result.reason.find("requires grad") != std::string::npos && tell_once(told_gradients_)) {
    result.warnings.push_back("the module runs as it is, fallback to aten executor: " + result.reason);
  }
  session_.count_fallback();
  return std::move(result);
}

template <typename Work>
auto ProgramImpl::settled(Slots& slots, const RunCounters& counters, Work&& work) const {
  try {
    return work();
  } catch (...) {
    if (counters.origin != Step::kAfterAll) settle_writes(graph_, slots, counters.origin);
    throw;
  }
}

std::string ProgramImpl::run_plan(const Plan& plan, Call& call) {
  if (plan.graph != nullptr && plan.graph->run({plan, call.inputs, graph_.inputs.size(), input_slots_, session_.graph_capture.get()}, call.outputs, call.counters)) return {};
  Slots slots = frame(call.inputs, plan.slot_count);
  const bool give_up = call.given != nullptr && plan.made_for != nullptr;
  if (give_up) call.given->clear();  // the frame has them
  const auto from = settled(slots, call.counters, [&] { return plan.run(slots, call.counters, give_up); });
  if (!from) {
    collect(plan.outputs, slots, call.outputs);
    return {};
  }
  // An ATen result looks different this time: go on as a miss from there.
  std::string unused;
  const auto held = plan.made_for != nullptr ? std::static_pointer_cast<Class>(plan.made_for) : class_of(call.options, call.inputs, unused);
  FXF_ASSERT(held != nullptr, "a plan without its class");
  const Plan rest = settled(slots, call.counters, [&] { return Discovery(session_, *held->lowered, held->failed, call.options).run(slots, *from, call.counters); });
  collect(rest.outputs, slots, call.outputs);
  return "a result of another shape";
}

std::string ProgramImpl::run_miss(Call& call, RunResult& result) {
  std::string miss = "first call";
  const std::shared_ptr<Class> held = class_of(call.options, call.inputs, miss);
  if (held == nullptr) return run_recording(call);
  if (call.options.mode == Mode::Strict) check_strict(*held->lowered);
  tell_target_problems(*held->lowered, result);
  if (call.options.compile == CompilePolicy::Async && !held->prepared) return run_meanwhile(held, call);
  Discovery discovery(session_, *held->lowered, held->failed, call.options);
  if (miss != "sizes" && call.options.compile == CompilePolicy::Sync) discovery.prefetch();
  Slots slots = frame(call.inputs, held->lowered->graph.values.size());
  Plan plan = settled(slots, call.counters, [&] { return discovery.run(slots, 0, call.counters); });
  tell_failures(*held, result);
  collect(plan.outputs, slots, call.outputs);
  plan.made_for = held;
  set_input_lifetimes(plan, last_units_of_inputs(*held->lowered, plan));
  finish_plan(plan, call, discovery.memory());
  return miss;
}

std::string ProgramImpl::run_meanwhile(const std::shared_ptr<Class>& held, Call& call) {
  const std::uint64_t present = session_.present(call.options);
  const std::uint64_t era = session_.background.era();
  if (held->preparing.exchange(era) != era) {
    session_.background.enqueue([held, &session = session_, options = call.options] {
      std::vector<std::optional<partitioner::Reason>> none(held->lowered->partitions.size());
      Discovery(session, *held->lowered, none, options).prefetch();
      held->prepared = true;
    });
  }
  Slots slots = frame(call.inputs, graph_.values.size());
  Plan plan = settled(slots, call.counters, [&] { return run_plain(slots, call.counters); });
  collect(plan.outputs, slots, call.outputs);
  plan.missing_kernels = 1;
  plan.cache_version = present;
  finish_plan(plan, call);
  return "kernels compile in the background";
}

std::string ProgramImpl::run_recording(Call& call) {
  Slots slots = frame(call.inputs, graph_.values.size());
  ir::Graph graph = settled(slots, call.counters, [&] { return record(slots, call.counters); });
  auto made = std::make_shared<Class>();
  made->lowered = std::make_shared<LoweredGraph>(lower(session_, std::move(graph), call.options));
  made->failed.resize(made->lowered->partitions.size());
  if (call.options.mode == Mode::Strict) check_strict(*made->lowered);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    classes_.emplace_front(class_key(call.options, call.inputs), made);
    if (classes_.size() > kMaxClasses) classes_.pop_back();
  }
  collect(graph_.outputs, slots, call.outputs);
  return "no forecast for these dtypes, ranks, devices or memory orders";
}

}  // namespace fxfuser::executor
