// What a proposed partition loses before it is worth a kernel: groups and borders that only re-read memory in another way,
// and, on request, groups with a single op.

#include <algorithm>

#include "partitioner/borders.h"
#include "partitioner/disjoint_sets.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/partition.h"
#include "partitioner/phase.h"

namespace fxfuser::partitioner {
namespace {

enum class Fate : std::uint8_t { Outside, Kept, PeeledBefore, PeeledAfter };

bool is_metadata(const ir::Node& node) { return node.row != nullptr && node.row->metadata_only; }

/// A view. A copy, by its row's strides, is a pass of its own over memory in eager and costs a group that it borders nothing.
bool is_view(const ir::Node& node) { return is_metadata(node) && node.row->strides != "copy"; }

constexpr std::int64_t kManyElements = std::int64_t{1} << 16;

/// Whether a node copies many elements into another order of memory (a transpose made contiguous). That is work: a copy by ATen walks one
/// of the sides against the order of its memory. A copy in order is as fast as memory is, and a small one is not worth a compile.
bool reorders(const ir::Graph& graph, const ir::Node& node) {
  if (node.row == nullptr || (node.row->strides != "copy" && node.row->strides != "own")) return false;
  if (node.args.empty() || !node.args[0].is_value() || node.outputs.empty()) return false;
  const auto& from = graph.value(node.args[0].value()).meta;
  const auto& to = graph.value(node.outputs[0]).meta;
  if (!from || !to || from->sizes.size() != to->sizes.size() || to->numel() < kManyElements) return false;
  std::vector<std::size_t> dims;  // as the result has them, outermost first
  for (std::size_t d = 0; d < to->sizes.size(); ++d) {
    if (to->sizes[d] > 1 && from->strides[d] > 0) dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) { return to->strides[a] > to->strides[b]; });
  return !std::is_sorted(dims.begin(), dims.end(), [&](std::size_t a, std::size_t b) { return from->strides[a] > from->strides[b]; });
}

/// How many compute ops a node stands for: one that makes several results at once (var_mean, a batch norm) is more than one.
int compute_ops(const ir::Graph& graph, const ir::Node& node) {
  if (is_metadata(node)) return reorders(graph, node) ? 1 : 0;
  const bool many = node.outputs.size() > 1 && node.row != nullptr &&
                    (node.row->kind == ir::OpKind::Composite || node.row->kind == ir::OpKind::Reduction);
  return many ? 2 : 1;
}

class Pruner {
 public:
  Pruner(const ir::Graph& graph, const PartitionOptions& options)
      : graph_(graph), options_(options), users_(ir::users_of(graph)), borders_(graph, users_),
        fate_(graph.nodes.size(), Fate::Outside) {}

  void run(std::vector<Partition>& partitions) {
    std::vector<Partition> kept;
    for (const Partition& partition : partitions) prune_one(partition, kept);
    partitions = std::move(kept);
  }

  std::vector<Pruned> take() {
    std::sort(left_out_.begin(), left_out_.end(), [](const Pruned& a, const Pruned& b) { return a.node < b.node; });
    return std::move(left_out_);
  }

 private:
  void leave_out(ir::NodeId id, ReasonCode code, std::string detail) {
    left_out_.push_back({id, {code, std::move(detail)}});
  }

  void prune_one(const Partition& partition, std::vector<Partition>& kept) {
    const auto metadata = [&](ir::NodeId id) { return compute_ops(graph_, graph_.nodes[id]) == 0; };
    if (std::all_of(partition.nodes.begin(), partition.nodes.end(), metadata)) {
      for (const ir::NodeId id : partition.nodes) leave_out(id, ReasonCode::MetadataOnly, "the whole group moves no data");
      return;
    }
    peel(partition);
    std::vector<Partition> parts = split(partition);
    for (const ir::NodeId id : partition.nodes) fate_[id] = Fate::Outside;
    for (Partition& part : parts) {
      if (!options_.allow_single_op && count(part) < 2) {
        for (const ir::NodeId id : part.nodes) leave_out(id, ReasonCode::SingleOp, "the only compute op of its group");
        continue;
      }
      borders_.set(part);
      kept.push_back(std::move(part));
    }
  }

  /// Views at the borders become ATen steps before or after the group: those that read nothing computed in it, and those
  /// whose results nothing in it reads.
  void peel(const Partition& partition) {
    for (const ir::NodeId id : partition.nodes) fate_[id] = Fate::Kept;
    for (const ir::NodeId id : partition.nodes) {
      if (!is_view(graph_.nodes[id]) || reads_kept(id)) continue;
      fate_[id] = Fate::PeeledBefore;
      leave_out(id, ReasonCode::MetadataOnly, "a view of what enters the group");
    }
    for (auto it = partition.nodes.rbegin(); it != partition.nodes.rend(); ++it) {
      if (fate_[*it] != Fate::Kept || !is_view(graph_.nodes[*it]) || read_by_kept(*it)) continue;
      fate_[*it] = Fate::PeeledAfter;
      leave_out(*it, ReasonCode::MetadataOnly, "a view of what leaves the group");
    }
  }

  bool reads_kept(ir::NodeId id) const {
    bool found = false;
    ir::for_each_value(graph_.nodes[id].args, [&](ir::ValueId value) {
      const ir::NodeId producer = graph_.values[value].producer;
      found = found || (producer != ir::kNoNode && fate_[producer] == Fate::Kept);
    });
    return found;
  }

  bool read_by_kept(ir::NodeId id) const {
    for (const ir::ValueId value : graph_.nodes[id].outputs) {
      const auto& readers = users_[value];
      if (std::any_of(readers.begin(), readers.end(), [&](ir::NodeId user) { return fate_[user] == Fate::Kept; })) return true;
    }
    return false;
  }

  /// A peeled view may have been all that held parts together: they become partitions of their own.
  std::vector<Partition> split(const Partition& partition) {
    std::vector<ir::NodeId> nodes;
    for (const ir::NodeId id : partition.nodes) {
      if (fate_[id] == Fate::Kept) nodes.push_back(id);
    }
    if (nodes.size() == partition.nodes.size()) return {partition};
    const std::vector<std::uint32_t> roots = connect(nodes);
    std::vector<Partition> parts;
    std::vector<std::uint32_t> place(nodes.size(), 0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (roots[i] == i) {
        place[i] = static_cast<std::uint32_t>(parts.size());
        parts.push_back({{}, {}, {}, partition.device, partition.phase});
      }
      parts[place[roots[i]]].nodes.push_back(nodes[i]);
    }
    return parts;
  }

  /// For each of `nodes` the position of the first node of its connected part (a shared tensor input connects).
  std::vector<std::uint32_t> connect(const std::vector<ir::NodeId>& nodes) const {
    DisjointSets sets(nodes.size());
    std::vector<std::pair<ir::ValueId, std::uint32_t>> touches;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      const auto touch = [&](ir::ValueId value) {
        if (graph_.values[value].kind == ir::ValueKind::Tensor) touches.emplace_back(value, i);
      };
      ir::for_each_value(graph_.nodes[nodes[i]].args, touch);
      for (const ir::ValueId value : graph_.nodes[nodes[i]].outputs) touch(value);
    }
    std::sort(touches.begin(), touches.end());
    for (std::size_t i = 1; i < touches.size(); ++i) {
      if (touches[i].first == touches[i - 1].first) sets.join(touches[i].second, touches[i - 1].second);
    }
    std::vector<std::uint32_t> roots;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) roots.push_back(sets.find(i));
    return roots;
  }

  int count(const Partition& partition) const {
    int total = 0;
    for (const ir::NodeId id : partition.nodes) total = std::min(2, total + compute_ops(graph_, graph_.nodes[id]));
    return total;
  }

  const ir::Graph& graph_;
  const PartitionOptions options_;
  const Users users_;
  Borders borders_;
  std::vector<Fate> fate_;
  std::vector<Pruned> left_out_;
};

}  // namespace

std::vector<Pruned> prune(const ir::Graph& graph, std::vector<Partition>& partitions, const PartitionOptions& options) {
  Pruner pruner(graph, options);
  pruner.run(partitions);
  return pruner.take();
}

}  // namespace fxfuser::partitioner
