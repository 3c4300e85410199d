// The report as JSON: what explain says, from verdicts and group plans; nothing is run.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "executor/forecast.h"
#include "executor/plan_graph.h"
#include "executor/program.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

using Json = nlohmann::ordered_json;

void move_to(ir::Graph& graph, std::string_view target) {
  if (target.empty()) return;
  FXF_CHECK(target == "host" || target == "cuda", Value, "target is '{}'; it can be 'host' or 'cuda'", target);
  const ir::Device device = target == "cuda" ? ir::Device{ir::DeviceKind::Cuda, 0} : ir::Device{};
  for (ir::Value& value : graph.values) {
    if (value.meta) value.meta->device = device;
  }
  const std::function<void(ir::Attr&)> move = [&](ir::Attr& attr) {
    if (auto* held = std::get_if<ir::Device>(&attr.v)) *held = device;
    if (auto* list = std::get_if<ir::AttrList>(&attr.v)) {
      for (ir::Attr& item : *list) move(item);
    }
  };
  for (ir::Node& node : graph.nodes) {
    for (ir::Attr& attr : node.args) move(attr);
  }
}

InputMetas of_tensors(const ir::Graph& graph, const std::vector<ir::TensorMeta>& metas) {
  InputMetas out(metas.size());
  for (std::size_t i = 0; i < metas.size(); ++i) {
    const ir::ValueId value = input_at(graph, i);
    if (graph.value(value).kind == ir::ValueKind::Tensor) out[i] = metas[i];
  }
  return out;
}

struct Kernels {
  Json list = Json::array();
  std::vector<std::string> of_node;                             // kernel name by node, "" where none
  std::vector<std::optional<partitioner::Reason>> refused;      // by partition
};

}  // namespace

std::pair<ir::Graph, std::shared_ptr<ProgramImpl::Class>> ProgramImpl::described(const std::vector<ir::TensorMeta>& metas, std::string_view target) {
  std::shared_ptr<Class> held;
  const InputMetas inputs = of_tensors(graph_, metas);
  if (target.empty() && !metas.empty()) {
    // A class that was run already knows the true metas of this program's values.
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto fitting = std::find_if(classes_.begin(), classes_.end(), [&](const auto& known) { return forecast_fits(known.second->lowered->graph, inputs); });
    if (fitting != classes_.end()) held = fitting->second;
  }
  ir::Graph graph = with_inputs(held != nullptr ? held->lowered->graph : graph_, inputs);
  move_to(graph, target);
  return {std::move(graph), held};
}

std::string ProgramImpl::explain(const Options& options, const std::vector<ir::TensorMeta>& metas, std::string_view target) {
  auto [graph, held] = described(metas, target);
  Options quiet = options;
  quiet.dump.clear();  // the report says it all
  const LoweredGraph lowered = lower(session_, std::move(graph), quiet);
  const bool same_partitions = held != nullptr && held->failed.size() == lowered.partitions.size();

  Kernels kernels;
  kernels.of_node.assign(lowered.graph.nodes.size(), "");
  kernels.refused.resize(lowered.partitions.size());
  std::set<std::string> distinct;
  Json partitions = Json::array();
  for (std::size_t p = 0; p < lowered.partitions.size(); ++p) {
    const partitioner::Partition& partition = lowered.partitions[p];
    std::vector<ir::TensorMeta> inputs;
    for (ir::ValueId value : partition.inputs) inputs.push_back(lowered.graph.value(value).meta.value_or(ir::TensorMeta{}));
    GroupPlan group = plan_group(session_, lowered, p, inputs, {}, quiet);
    if (!group.refusal && same_partitions && held->failed[p]) group.refusal = held->failed[p];
    kernels.refused[p] = group.refusal;
    std::vector<std::string> names;
    for (std::size_t s = 0; !group.refusal && s < group.sources.size(); ++s) {
      const codegen::KernelSource& source = group.sources[s];
      const codegen::Segment& segment = group.segmented.segments[s];
      std::set<std::string> members;
      for (ir::NodeId id : segment.nodes) members.insert(group.canonical.node(id).name);
      for (ir::NodeId id : partition.nodes) {
        if (members.count(lowered.graph.node(id).name) > 0) kernels.of_node[id] = source.name;
      }
      // A target that is not here has no compiler to ask.
      const auto origin = session_.target_problem(source.target).empty() ? session_.kernels.origin(source, session_.arch(partition.device).sm) : std::nullopt;
      const bool compiled = origin && origin->folder.empty();
      kernels.list.push_back({{"name", source.name},
                              {"kind", codegen::name(segment.schedule.kind)},
                              {"target", source.target == codegen::Target::Cuda ? "cuda" : "host"},
                              {"partition", p},
                              {"nodes", members.size()},
                              {"node_names", members},
                              {"bytes", source.bytes},
                              {"slots_per_element", source.slots_per_element},
                              {"compile_seconds", compiled ? Json(origin->seconds) : Json()},
                              {"loaded_from", origin && !compiled ? Json(origin->folder) : Json()},
                              {"schedule", codegen::to_string(segment.schedule)},
                              {"source", source.text}});
      distinct.insert(source.name);
      names.push_back(source.name);
    }
    Json node_names = Json::array();
    for (ir::NodeId id : partition.nodes) node_names.push_back(lowered.graph.node(id).name);
    partitions.push_back({{"nodes", node_names}, {"kernels", names}, {"device", ir::to_string(partition.device)}, {"reason", group.refusal ? to_string(*group.refusal) : ""}});
  }

  Json nodes = Json::array();
  std::size_t with_row = 0, fused = 0, aten = 0, counted = 0;
  for (ir::NodeId id = 0; id < lowered.graph.nodes.size(); ++id) {
    const ir::Node& node = lowered.graph.node(id);
    const std::int32_t p = lowered.partition_of[id];
    std::string status = "aten", reason;
    if (node.kind == ir::NodeKind::Scalar) {
      status = "scalar";
    } else if (p >= 0) {
      const auto& refusal = kernels.refused[static_cast<std::size_t>(p)];
      status = refusal ? "aten" : "fused";
      if (refusal) reason = to_string(*refusal);
    } else if (lowered.support[id].refusal) {
      reason = to_string(*lowered.support[id].refusal);
      if (lowered.support[id].refusal->code == partitioner::ReasonCode::MetadataOnly) status = "view";
    }
    ++counted;
    if (status == "aten") ++aten;
    // A view at a border computes nothing: it has a row but no kernel could hold it.
    if (node.row != nullptr && status != "view") {
      ++with_row;
      if (status == "fused") ++fused;
    }
    nodes.push_back({{"name", node.name}, {"target", node.target}, {"status", status}, {"reason", reason}, {"partition", p}, {"kernel", kernels.of_node[id].empty() ? Json() : Json(kernels.of_node[id])}, {"where", node.where}});
  }
  Json edges = Json::array();
  for (const ir::Node& node : lowered.graph.nodes) {
    std::set<std::string> sources;
    ir::for_each_value(node.args, [&](ir::ValueId value) {
      const ir::NodeId producer = lowered.graph.value(value).producer;
      sources.insert(producer == ir::kNoNode ? lowered.graph.value(value).name : lowered.graph.node(producer).name);
    });
    for (const std::string& source : sources) edges.push_back({source, node.name});
  }
  Json totals = {{"nodes", counted},
                       {"row_nodes", with_row},
                       {"fused_nodes", fused},
                       {"aten_nodes", aten},
                       {"partitions", lowered.partitions.size()},
                       {"kernels", kernels.list.size()},
                       {"distinct_kernels", distinct.size()},
                       {"fused_share", with_row == 0 ? (options.mode == Mode::Aten ? 0.0 : 1.0) : static_cast<double>(fused) / static_cast<double>(with_row)},
                       {"partition_seconds", lowered.partition_seconds},
                       {"compile_seconds", session_.kernels.counters().compile_seconds}};
  if (options.cuda_graph) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::shared_ptr<PlanGraph> graph_of_last = last_graph_.lock();
    totals["cuda_graph"] = graph_of_last == nullptr ? "not called yet" : graph_of_last->note();
  }
  std::optional<Miss> miss;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    miss = last_miss_;
  }
  Json planned_anew;  // null: no call, or plans took all of them
  if (miss) {
    const std::vector<KeyDifference> differing = differences(*miss);
    Json fields = Json::array();
    for (const KeyDifference& difference : differing) fields.push_back({{"field", difference.field}, {"text", difference.text}});
    planned_anew = {{"text", text_of(*miss, differing)}, {"differences", fields}};
  }
  return Json{{"totals", totals}, {"nodes", nodes}, {"partitions", partitions}, {"kernels", kernels.list}, {"edges", edges}, {"planned_anew", planned_anew}}.dump();
}

}  // namespace fxfuser::executor
