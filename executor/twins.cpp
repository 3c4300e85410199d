#include "executor/twins.h"

#include <fmt/format.h>

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

}  // namespace fxfuser::executor
