#include "executor/program.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>

#include "executor/aten_bridge.h"
#include "executor/call_guards.h"
#include "executor/discover.h"
#include "executor/propagate.h"
#include "executor/settle.h"
#include "partitioner/functionalize.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

constexpr std::size_t kMaxPlans = 256;
constexpr std::size_t kMaxClasses = 16;

}  // namespace

std::size_t ProgramImpl::SignatureHash::operator()(const Signature& words) const {
  std::uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (std::int64_t word : words) hash = (hash ^ static_cast<std::uint64_t>(word)) * 0xd6e8feb86659fd93ull, hash ^= hash >> 32;
  return static_cast<std::size_t>(hash);
}

ProgramImpl::ProgramImpl(Session& session, ImportedGraph imported) : session_(session) {
  session.ops.bind(imported.graph);
  partitioner::Functionalized functional = partitioner::functionalize(imported.graph, imported.alias, session.ops);
  graph_ = std::move(functional.graph);
  for (const ir::WriteBack& write : graph_.write_backs) {
    if (std::find(functional.written.begin(), functional.written.end(), write.target) == functional.written.end()) functional.written.push_back(write.target);
  }
  for (ir::ValueId value : functional.written) {
    for (std::size_t i = 0; i < graph_.inputs.size() + graph_.constants.size(); ++i) {
      if ((i < graph_.inputs.size() ? graph_.inputs[i] : graph_.constants[i - graph_.inputs.size()].value) == value) written_.push_back(i);
    }
  }
  session.ops.bind(graph_);
  keep_.assign(graph_.values.size(), false);
  for (ir::ValueId input : graph_.inputs) keep_[input] = true;
  for (const ir::Constant& constant : graph_.constants) keep_[constant.value] = true;
}

bool ProgramImpl::sign(std::span<const c10::IValue> inputs, Signature& out, std::string& reason) const {
  reason = thread_problem();
  if (!reason.empty()) return false;
  const auto local = c10::impl::tls_local_dispatch_key_set();
  out.push_back(static_cast<std::int64_t>(local.included_.raw_repr()));
  out.push_back(static_cast<std::int64_t>(local.excluded_.raw_repr()));
  out.push_back((c10::GradMode::is_enabled() ? 1 : 0) | (c10::InferenceMode::is_enabled() ? 2 : 0));
  for (const c10::IValue& input : inputs) {
    if (input.isTensor()) {
      const at::Tensor& tensor = input.toTensor();
      reason = tensor_problem(tensor);
      if (!reason.empty()) return false;
      out.push_back(static_cast<std::int64_t>(tensor.key_set().raw_repr()));
      // A device index of -1 (the CPU) is one byte here: sign extension would cover the other fields.
      const auto device = static_cast<std::int64_t>(static_cast<std::uint8_t>(tensor.device().index()));
      out.push_back((static_cast<std::int64_t>(tensor.scalar_type()) << 32) | (device << 24) | (tensor.dim() << 8) | alignment_of(tensor));
      out.insert(out.end(), tensor.sizes().begin(), tensor.sizes().end());
      out.insert(out.end(), tensor.strides().begin(), tensor.strides().end());
    } else if (input.isInt()) {
      out.push_back(-1);
      out.push_back(input.toInt());
    } else if (input.isDouble()) {
      out.push_back(-2);  // its value is read at each call
    } else if (input.isBool()) {
      out.push_back(input.toBool() ? -3 : -4);
    } else if (input.isNone()) {
      out.push_back(-5);
    } else {
      reason = "an input that is neither a tensor nor a number";
      return false;
    }
  }
  if (!written_.empty() && writes_overlap(inputs)) {
    reason = "an input that is written shares memory with another, or with itself";
    return false;
  }
  return true;
}

/// Inputs that are written must share no memory with others: eager would see each write at once.
bool ProgramImpl::writes_overlap(std::span<const c10::IValue> inputs) const {
  const auto range = [](const at::Tensor& tensor) {
    const auto* first = static_cast<const char*>(tensor.const_data_ptr());
    std::int64_t last = 0;
    for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
    return std::pair(first, first + (last + 1) * static_cast<std::int64_t>(tensor.element_size()));
  };
  for (std::size_t at : written_) {
    if (!inputs[at].isTensor() || inputs[at].toTensor().numel() == 0) continue;
    const at::Tensor& written = inputs[at].toTensor();
    if (!written.is_non_overlapping_and_dense() && at::has_internal_overlap(written) != at::MemOverlap::No) return true;
    for (std::size_t other = 0; other < inputs.size(); ++other) {
      if (other == at || !inputs[other].isTensor()) continue;
      const at::Tensor& tensor = inputs[other].toTensor();
      if (tensor.numel() == 0 || !tensor.has_storage() || !written.is_alias_of(tensor)) continue;
      const auto a = range(written), b = range(tensor);
      if (a.first < b.second && b.first < a.second) return true;
    }
  }
  return false;
}

std::shared_ptr<const Plan> ProgramImpl::find_plan(const Signature& signature, const Options& options) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_current = [&](const Plan& plan) { return plan.missing_kernels == 0 || plan.cache_version == session_.kernels.version(); };
  if (!plans_.empty() && plans_.front().signature == signature && plans_.front().options == options && is_current(*plans_.front().plan)) return plans_.front().plan;
  const auto found = by_signature_.find(signature);
  if (found == by_signature_.end()) return nullptr;
  for (const auto& at : found->second) {
    if (!(at->options == options)) continue;
    if (!is_current(*at->plan)) return nullptr;
    plans_.splice(plans_.begin(), plans_, at);
    return at->plan;
  }
  return nullptr;
}

void ProgramImpl::remember(Signature signature, const Options& options, std::shared_ptr<const Plan> plan) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto known = by_signature_.find(signature); known != by_signature_.end()) {
    for (const auto& at : known->second) {
      if (!(at->options == options)) continue;
      at->plan = std::move(plan);
      plans_.splice(plans_.begin(), plans_, at);
      return;
    }
  }
  plans_.push_front({signature, options, std::move(plan)});
  by_signature_[std::move(signature)].push_back(plans_.begin());
  if (plans_.size() <= kMaxPlans) return;
  const auto oldest = std::prev(plans_.end());
  auto found = by_signature_.find(oldest->signature);
  std::erase(found->second, oldest);
  if (found->second.empty()) by_signature_.erase(found);
  plans_.pop_back();
}

Slots ProgramImpl::frame(std::span<const c10::IValue> inputs, std::size_t slots) const {
  Slots out(slots);
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) out[graph_.inputs[i]] = inputs[i];
  for (std::size_t i = 0; i < graph_.constants.size(); ++i) out[graph_.constants[i].value] = inputs[graph_.inputs.size() + i];
  return out;
}

void ProgramImpl::collect(const Plan& plan, Slots& slots, std::vector<c10::IValue>& outputs) const {
  outputs.clear();
  for (const ir::Attr& attr : plan.outputs) outputs.push_back(to_ivalue(attr, attr.is_value() ? c10::TypePtr(c10::AnyType::get()) : c10::TypePtr(c10::NumberType::get()), slots));
}

/// Do the metas of the graph's inputs agree with these in dtype, rank and device (verdicts), or in everything (sizes)?
bool ProgramImpl::forecast_fits(const ir::Graph& graph, std::span<const c10::IValue> inputs) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& value = graph.value(i < graph.inputs.size() ? graph.inputs[i] : graph.constants[i - graph.inputs.size()].value);
    if (!inputs[i].isTensor()) {
      if (value.kind == ir::ValueKind::Tensor) return false;
      continue;
    }
    const at::Tensor& tensor = inputs[i].toTensor();
    if (value.kind != ir::ValueKind::Tensor || !value.meta) return false;
    if (to_dtype(tensor.scalar_type()) != value.meta->dtype || tensor.dim() != value.meta->rank() || to_device(tensor.device()) != value.meta->device) return false;
  }
  for (const ir::Node& node : graph.nodes) {
    for (ir::ValueId output : node.outputs) {
      if (graph.value(output).kind == ir::ValueKind::Tensor && !graph.value(output).meta && node.outputs.size() == 1) return false;
    }
  }
  return true;
}

void ProgramImpl::run_plain(Slots& slots, RunCounters& counters) const {
  LoweredGraph plain;  // no partitions
  plain.graph = graph_;
  plain.partition_of.assign(graph_.nodes.size(), -1);
  for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) plain.units.push_back({-1, id});
  std::vector<std::optional<partitioner::Reason>> failed;
  const Options options;
  Discovery(session_, plain, failed, options).run(slots, 0, counters);
}

void ProgramImpl::run_aten(std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs) {
  check_count(inputs.size());
  RunCounters counters;
  Slots slots = frame(inputs, graph_.values.size());
  run_plain(slots, counters);
  Plan plain;
  plain.outputs = graph_.outputs;
  collect(plain, slots, outputs);
  session_.count_steps({counters.launches_cuda, counters.launches_host, counters.aten_steps, counters.view_steps}, nullptr);
}

void ProgramImpl::check_count(std::size_t given) const {
  const std::size_t expected = graph_.inputs.size() + graph_.constants.size();
  FXF_CHECK(given == expected, Type, "{} inputs, {} were given", expected, given);
}

ir::Graph ProgramImpl::record(Slots& slots, RunCounters& counters) const {
  ir::Graph graph = graph_;
  run_plain(slots, counters);
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
  std::string key = fmt::format("{}{}{}", static_cast<int>(options.mode), options.allow_single_op_fusion, static_cast<int>(options.rounding));
  for (const std::string& op : options.skip_ops) key += "-" + op;
  for (const c10::IValue& input : inputs) {
    if (!input.isTensor()) {
      key += input.isNone() ? ";n" : ";s";
      continue;
    }
    const at::Tensor& tensor = input.toTensor();
    key += fmt::format(";{},{},{}", static_cast<int>(tensor.scalar_type()), tensor.dim(), ir::to_string(to_device(tensor.device())));
  }
  return key;
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
  if (forecast_fits(graph_, inputs)) {
    graph = graph_;
    give_scalars_types(*graph, inputs);
  } else {
    graph = propagate(graph_, inputs);
  }
  if (!graph) return nullptr;
  auto made = std::make_shared<Class>();
  made->lowered = std::make_shared<LoweredGraph>(lower(session_, std::move(*graph), options));
  made->failed.resize(made->lowered->partitions.size());
  miss = "dtypes, ranks or devices";
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
    result.warnings.push_back("nothing is fused: what this graph computes is not supported by nvFuser, fallback to aten executor (fxfuser.explain says why for each node)");
  }
}

void ProgramImpl::tell_failures(const Class& held, RunResult& result) {
  for (const auto& failed : held.failed) {
    if (!failed || failed->code != partitioner::ReasonCode::CompileFailed) continue;
    const std::string why = failed->detail.substr(0, failed->detail.find('\n'));
    if (session_.tell_once("compile: " + why)) result.warnings.push_back("a generated kernel does not compile, fallback to aten executor for its group: " + why);
  }
}

RunResult ProgramImpl::run(const Options& options, std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs) {
  RunResult result;
  check_count(inputs.size());
  Signature signature;
  if (!sign(inputs, signature, result.reason)) {
    result.status = RunStatus::RunOriginal;
    if (options.mode == Mode::Strict) throw_error(ErrorKind::Value, "strictly_nvfuser can't take this call: " + result.reason);
    if (result.reason.find("requires grad") != std::string::npos && tell_once(told_gradients_)) {
      result.warnings.push_back("the module runs as it is, fallback to aten executor: " + result.reason);
    }
    session_.count_call(result, false, "");
    return result;
  }
  RunCounters counters;
  std::vector<std::string> names;
  if (session_.recording) counters.kernels = &names;
  const auto finish = [&](bool hit, const std::string& miss) {
    session_.count_call(result, hit, miss);
    session_.count_steps({counters.launches_cuda, counters.launches_host, counters.aten_steps, counters.view_steps, counters.missing_kernels}, counters.kernels);
  };
  const auto settled = [&](Slots& slots, auto&& work) {
    try {
      return work();
    } catch (...) {
      if (counters.origin != Step::kAfterAll) settle_writes(graph_, slots, counters.origin);
      throw;
    }
  };

  std::string miss = "first call";
  if (options.use_python_fusion_cache) {
    if (const auto plan = find_plan(signature, options)) {
      Slots slots = frame(inputs, plan->slot_count);
      const auto from = settled(slots, [&] { return plan->run(slots, counters); });
      if (!from) {
        collect(*plan, slots, outputs);
        finish(true, "");
        return result;
      }
      // An ATen result looks different this time: go on as a miss from there.
      std::string unused;
      const auto held = class_of(options, inputs, unused);
      FXF_ASSERT(held != nullptr, "a plan without its class");
      const Plan rest = settled(slots, [&] { return Discovery(session_, *held->lowered, held->failed, options).run(slots, *from, counters); });
      collect(rest, slots, outputs);
      finish(false, "a result of another shape");
      return result;
    }
  }
  std::shared_ptr<Class> held = class_of(options, inputs, miss);
  if (held == nullptr) {
    // No forecast for this class, and it must run to be known: this call runs through ATen and records the metas that the next one is planned with.
    Slots slots = frame(inputs, graph_.values.size());
    ir::Graph graph = settled(slots, [&] { return record(slots, counters); });
    auto made = std::make_shared<Class>();
    made->lowered = std::make_shared<LoweredGraph>(lower(session_, std::move(graph), options));
    made->failed.resize(made->lowered->partitions.size());
    if (options.mode == Mode::Strict) check_strict(*made->lowered);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      classes_.emplace_front(class_key(options, inputs), made);
      if (classes_.size() > kMaxClasses) classes_.pop_back();
    }
    Plan plain;
    plain.outputs = graph_.outputs;
    collect(plain, slots, outputs);
    finish(false, "no forecast for these dtypes, ranks or devices");
    return result;
  }
  if (options.mode == Mode::Strict) check_strict(*held->lowered);
  tell_target_problems(*held->lowered, result);
  Discovery discovery(session_, *held->lowered, held->failed, options);
  if (miss != "sizes") discovery.prefetch();
  Slots slots = frame(inputs, graph_.values.size());
  Plan plan = settled(slots, [&] { return discovery.run(slots, 0, counters); });
  tell_failures(*held, result);
  collect(plan, slots, outputs);
  std::vector<bool> keep = keep_;
  keep.resize(plan.slot_count, false);
  for (const ir::Attr& attr : plan.outputs) {
    if (attr.is_value()) keep[attr.value()] = true;
  }
  set_lifetimes(plan, keep);
  if (options.use_python_fusion_cache) remember(std::move(signature), options, std::make_shared<const Plan>(std::move(plan)));
  finish(false, miss);
  return result;
}

}  // namespace fxfuser::executor
