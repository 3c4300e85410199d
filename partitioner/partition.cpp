#include "partitioner/partition.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "partitioner/borders.h"
#include "partitioner/disjoint_sets.h"
#include "partitioner/ir/error.h"
#include "partitioner/phase.h"

namespace fxfuser::partitioner {
namespace {

bool same_group(const PhaseLabels& labels, ir::NodeId a, ir::NodeId b) {
  return labels.phase[a] == labels.phase[b] && labels.device[a] == labels.device[b];
}

/// Joins a producer with its readers, and the readers of one value with each other, within a group. A value's readers may
/// fall into several groups: `latest` holds the last reader seen of each.
void join_around(const ir::Graph& graph, const std::vector<Support>& support, const PhaseLabels& labels,
                 const std::vector<ir::NodeId>& readers, ir::ValueId value, DisjointSets& sets) {
  if (graph.values[value].kind != ir::ValueKind::Tensor) return;  // a shared number is no traffic to save
  std::map<std::tuple<std::int32_t, int, int>, ir::NodeId> latest;
  const auto visit = [&](ir::NodeId id) {
    if (!support[id].ok()) return;
    const ir::Device device = labels.device[id];
    const auto [at, fresh] = latest.emplace(std::tuple{labels.phase[id], static_cast<int>(device.kind), device.index}, id);
    if (!fresh) sets.join(at->second, id);
  };
  if (graph.values[value].producer != ir::kNoNode) visit(graph.values[value].producer);
  for (const ir::NodeId reader : readers) visit(reader);
}

}  // namespace

Borders::Borders(const ir::Graph& graph, const Users& users)
    : graph_(graph), users_(users), escapes_(graph.values.size(), false), seen_(graph.values.size(), 0) {
  ir::for_each_value(graph.outputs, [&](ir::ValueId value) { escapes_[value] = true; });
  for (const ir::WriteBack& write : graph.write_backs) escapes_[write.source] = true;
}

void Borders::set(Partition& partition) {
  ++mark_;
  partition.inputs.clear();
  partition.outputs.clear();
  const auto inside = [&](ir::NodeId id) {
    return std::binary_search(partition.nodes.begin(), partition.nodes.end(), id);
  };
  for (const ir::NodeId id : partition.nodes) {
    for (const ir::ValueId value : graph_.nodes[id].outputs) seen_[value] = mark_;  // made here: no input
  }
  for (const ir::NodeId id : partition.nodes) {
    ir::for_each_value(graph_.nodes[id].args, [&](ir::ValueId value) {
      if (seen_[value] == mark_) return;
      seen_[value] = mark_;
      partition.inputs.push_back(value);
    });
    for (const ir::ValueId value : graph_.nodes[id].outputs) {
      const auto& readers = users_[value];
      if (escapes_[value] || !std::all_of(readers.begin(), readers.end(), inside)) partition.outputs.push_back(value);
    }
  }
  std::sort(partition.outputs.begin(), partition.outputs.end());
}

void set_borders(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users, Partition& partition) {
  Borders(graph, users).set(partition);
}

std::vector<Partition> propose(const ir::Graph& graph, const std::vector<Support>& support) {
  FXF_ASSERT(support.size() == graph.nodes.size(), "{} verdicts for {} nodes", support.size(), graph.nodes.size());
  const Users users = ir::users_of(graph);
  const PhaseLabels labels = label_phases(graph, support, users);

  DisjointSets sets(graph.nodes.size());
  for (ir::ValueId value = 0; value < graph.values.size(); ++value) {
    join_around(graph, support, labels, users[value], value, sets);
  }

  std::vector<Partition> partitions;
  std::vector<std::uint32_t> place(graph.nodes.size(), 0);
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!support[id].ok()) continue;
    const std::uint32_t root = sets.find(id);
    if (root == id) {  // the smallest member stands for the set, so it comes first
      place[id] = static_cast<std::uint32_t>(partitions.size());
      partitions.push_back({{}, {}, {}, labels.device[id], static_cast<std::uint32_t>(labels.phase[id])});
    }
    FXF_ASSERT(same_group(labels, root, id), "nodes {} and {} joined across a border", root, id);
    partitions[place[root]].nodes.push_back(id);
  }
  // Between two partitions of one phase there is no path, so any order of them runs; between phases the lower goes first.
  std::stable_sort(partitions.begin(), partitions.end(),
                   [](const Partition& a, const Partition& b) { return a.phase < b.phase; });
  Borders borders(graph, users);
  for (Partition& partition : partitions) borders.set(partition);
  return partitions;
}

}  // namespace fxfuser::partitioner
