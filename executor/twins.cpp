#include "executor/twins.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include "partitioner/ir/text.h"

namespace fxfuser::executor {
namespace {

/// A partition as text in which values go by their place: equal texts compute the same.
class StructureText {
 public:
  explicit StructureText(const ir::Graph& graph) : graph_(graph) {}

  std::string of(const partitioner::Partition& partition) {
    for (ir::ValueId input : partition.inputs) text_ += fmt::format("{}{} ", place(input), static_cast<int>(graph_.value(input).kind));
    for (ir::NodeId id : partition.nodes) {
      const ir::Node& node = graph_.node(id);
      text_ += node.target + "(";
      for (const ir::Attr& arg : node.args) add(arg);
      text_ += ")";
      for (ir::ValueId output : node.outputs) text_ += fmt::format(" {}", place(output));
      text_ += "\n";
    }
    for (ir::ValueId output : partition.outputs) text_ += fmt::format("{} ", place(output));
    return text_ + ir::to_string(partition.device);
  }

 private:
  std::size_t place(ir::ValueId value) { return places_.emplace(value, places_.size()).first->second; }

  void add(const ir::Attr& attr) {
    if (attr.is_value()) {
      text_ += fmt::format("%{},", place(attr.value()));
    } else if (attr.is_list()) {
      text_ += "[";
      for (const ir::Attr& item : attr.list()) add(item);
      text_ += "]";
    } else if (const auto* opaque = std::get_if<ir::Opaque>(&attr.v)) {
      text_ += fmt::format("{},", static_cast<const void*>(opaque->handle.get()));
    } else {
      text_ += ir::print(attr) + ",";
    }
  }

  const ir::Graph& graph_;
  std::unordered_map<ir::ValueId, std::size_t> places_;
  std::string text_;
};

}  // namespace

std::vector<std::uint32_t> twins_of(const ir::Graph& graph, const std::vector<partitioner::Partition>& partitions) {
  std::unordered_map<std::string, std::uint32_t> first;
  std::vector<std::uint32_t> twins;
  for (std::uint32_t p = 0; p < partitions.size(); ++p) twins.push_back(first.emplace(StructureText(graph).of(partitions[p]), p).first->second);
  return twins;
}

namespace {

/// Does a partition make single numbers of single numbers that the caller gave, at whatever time?
bool is_free_number(const ir::Graph& graph, const partitioner::Partition& partition) {
  const auto is_number = [&](ir::ValueId value) {
    const ir::Value& info = graph.value(value);
    return info.kind == ir::ValueKind::Tensor && info.meta && info.meta->sizes.empty();
  };
  return std::all_of(partition.inputs.begin(), partition.inputs.end(), [&](ir::ValueId value) { return is_number(value) && graph.value(value).producer == ir::kNoNode; }) &&
         std::all_of(partition.nodes.begin(), partition.nodes.end(), [&](ir::NodeId id) {
           const ir::Node& node = graph.node(id);
           return node.after.empty() && std::all_of(node.outputs.begin(), node.outputs.end(), is_number);
         });
}

std::string dtypes_of(const ir::Graph& graph, const partitioner::Partition& partition) {
  std::string text;
  for (ir::ValueId input : partition.inputs) text += std::string(ir::name(graph.value(input).meta->dtype)) + " ";
  return text;
}

}  // namespace

void join_equal_numbers(const ir::Graph& graph, std::vector<partitioner::Partition>& partitions) {
  const std::vector<std::uint32_t> twins = twins_of(graph, partitions);
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> first;  // by twin and dtypes
  std::set<std::size_t> grown;
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    if (!is_free_number(graph, partitions[p])) continue;
    const std::size_t home = first.emplace(std::pair(twins[p], dtypes_of(graph, partitions[p])), p).first->second;
    if (home == p) continue;
    std::vector<ir::NodeId>& nodes = partitions[home].nodes;
    nodes.insert(nodes.end(), partitions[p].nodes.begin(), partitions[p].nodes.end());
    partitions[p].nodes.clear();
    grown.insert(home);
  }
  if (grown.empty()) return;
  const std::vector<std::vector<ir::NodeId>> users = ir::users_of(graph);
  for (const std::size_t p : grown) {
    std::sort(partitions[p].nodes.begin(), partitions[p].nodes.end());
    partitioner::set_borders(graph, users, partitions[p]);
  }
  std::erase_if(partitions, [](const auto& partition) { return partition.nodes.empty(); });
}

}  // namespace fxfuser::executor
