#include "partitioner/phase.h"

#include <algorithm>
#include <limits>

#include "partitioner/disjoint_sets.h"

namespace fxfuser::partitioner {
namespace {

constexpr int kMaxRounds = 4;            // of pinning; each is linear
constexpr std::size_t kSharedReads = 8;  // users looked at when asking who else reads a value: keeps wide values linear

/// How much the label must rise from node `from` to node `to`.
std::int32_t rise(const std::vector<Support>& support, const PhaseLabels& labels, ir::NodeId from, ir::NodeId to,
                  bool data_edge) {
  if (!support[to].ok()) return 0;
  if (!support[from].ok()) return 1;
  return data_edge && labels.device[from] == labels.device[to] ? 0 : 1;
}

/// Calls fn(producer, is_data_edge) for every edge into a node.
template <typename Fn>
void for_each_edge_in(const ir::Graph& graph, const ir::Node& node, Fn&& fn) {
  ir::for_each_value(node.args, [&](ir::ValueId value) {
    const ir::NodeId producer = graph.values[value].producer;
    if (producer != ir::kNoNode) fn(producer, true);
  });
  for (const ir::NodeId before : node.after) fn(before, false);
}

/// The second pass. All labels are first pushed as late as they go; pieces that gain nothing by it are pinned back to their
/// early label and the push is repeated, until every piece that moved gains.
class Delay {
 public:
  Delay(const ir::Graph& graph, const std::vector<Support>& support, const Users& users, const PhaseLabels& early)
      : graph_(graph), support_(support), users_(users), early_(early), pinned_(graph.nodes.size(), false),
        escapes_(graph.values.size(), false) {
    ir::for_each_value(graph.outputs, [&](ir::ValueId value) { escapes_[value] = true; });
    for (const ir::WriteBack& write : graph.write_backs) escapes_[write.source] = true;
  }

  std::vector<std::int32_t> run() {
    for (int round = 0; round < kMaxRounds; ++round) {
      push_late();
      if (!pin_what_gains_nothing()) return late_;
    }
    return early_.phase;  // still unsettled: the early labels are always right
  }

 private:
  void push_late() {
    const auto last = early_.phase.empty() ? 0 : *std::max_element(early_.phase.begin(), early_.phase.end());
    constexpr std::int32_t kOpen = std::numeric_limits<std::int32_t>::max();
    late_.assign(graph_.nodes.size(), kOpen);
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      const auto id = static_cast<ir::NodeId>(i);
      if (pinned_[i]) late_[i] = early_.phase[i];
      else if (late_[i] == kOpen) late_[i] = support_[i].ok() ? early_.phase[i] : last;  // read by nobody
      for_each_edge_in(graph_, graph_.nodes[i], [&](ir::NodeId from, bool data) {
        late_[from] = std::min(late_[from], late_[i] - rise(support_, early_, from, id, data));
      });
    }
  }

  bool moves(ir::NodeId id) const { return support_[id].ok() && late_[id] != early_.phase[id]; }

  /// Joins the moving nodes that keep together into pieces, weighs each, and pins the ones that do not pay.
  bool pin_what_gains_nothing() {
    DisjointSets pieces(graph_.nodes.size());
    bool any = false;
    for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!moves(id)) continue;
      any = true;
      for_each_edge_in(graph_, graph_.nodes[id], [&](ir::NodeId from, bool) {
        if (moves(from) && early_.phase[from] == early_.phase[id] && late_[from] == late_[id]) pieces.join(from, id);
      });
    }
    if (!any) return false;
    std::vector<std::int64_t> saved(graph_.nodes.size(), 0);
    for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (moves(id)) saved[pieces.find(id)] += traffic(id, early_.phase, pieces) - traffic(id, late_, pieces);
    }
    bool changed = false;
    for (ir::NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (!moves(id) || saved[pieces.find(id)] > 0) continue;
      pinned_[id] = true;
      changed = true;
    }
    return changed;
  }

  /// Bytes that the borders of a node cost when its piece has the label that `labels` gives it and all others are late.
  std::int64_t traffic(ir::NodeId id, const std::vector<std::int32_t>& labels, DisjointSets& pieces) const {
    const std::uint32_t piece = pieces.find(id);
    const std::int32_t at = labels[id];
    const auto beside = [&](ir::NodeId other) {  // in the same group as this node?
      if (!support_[other].ok() || early_.device[other] != early_.device[id]) return false;
      return pieces.find(other) == piece || late_[other] == at;
    };
    std::int64_t bytes = 0;
    ir::for_each_value(graph_.nodes[id].args, [&](ir::ValueId value) {
      const ir::NodeId producer = graph_.values[value].producer;
      const bool made = producer != ir::kNoNode;
      if (made && beside(producer)) return;
      if (!read_anyway(value, id, beside)) bytes += bytes_of(graph_, value);
      if (made && support_[producer].ok() && !stored_anyway(value, producer, id)) bytes += bytes_of(graph_, value);
    });
    for (const ir::ValueId value : graph_.nodes[id].outputs) {
      bool outside = escapes_[value];
      std::int64_t readers = 0;
      for (const ir::NodeId user : users_[value]) {
        if (beside(user)) continue;
        outside = true;
        readers = 1;
        break;
      }
      bytes += (outside ? 1 + readers : 0) * bytes_of(graph_, value);
    }
    return bytes;
  }

  template <typename Fn>
  bool read_anyway(ir::ValueId value, ir::NodeId reader, const Fn& beside) const {
    const auto& readers = users_[value];
    const std::size_t count = std::min(readers.size(), kSharedReads);
    for (std::size_t i = 0; i < count; ++i) {
      if (readers[i] != reader && beside(readers[i])) return true;
    }
    return readers.size() > kSharedReads;
  }

  bool stored_anyway(ir::ValueId value, ir::NodeId producer, ir::NodeId reader) const {
    const auto& readers = users_[value];
    if (escapes_[value] || readers.size() > kSharedReads) return true;
    for (const ir::NodeId other : readers) {
      if (other != reader && (!support_[other].ok() || late_[other] != late_[producer])) return true;
    }
    return false;
  }

  const ir::Graph& graph_;
  const std::vector<Support>& support_;
  const Users& users_;
  const PhaseLabels& early_;
  std::vector<bool> pinned_, escapes_;
  std::vector<std::int32_t> late_;
};

}  // namespace

ir::Device device_of(const ir::Graph& graph, const ir::Node& node) {
  for (const ir::ValueId value : node.outputs) {
    if (graph.values[value].meta) return graph.values[value].meta->device;
  }
  std::optional<ir::Device> device;
  ir::for_each_value(node.args, [&](ir::ValueId value) {
    if (!device && graph.values[value].meta) device = graph.values[value].meta->device;
  });
  return device.value_or(ir::Device{});
}

std::int64_t bytes_of(const ir::Graph& graph, ir::ValueId value) {
  const ir::Value& v = graph.values[value];
  if (v.kind != ir::ValueKind::Tensor || !v.meta) return 0;
  return v.meta->numel() * ir::itemsize(v.meta->dtype);
}

PhaseLabels earliest_phases(const ir::Graph& graph, const std::vector<Support>& support) {
  PhaseLabels labels;
  labels.device.reserve(graph.nodes.size());
  labels.phase.reserve(graph.nodes.size());
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    labels.device.push_back(device_of(graph, graph.nodes[id]));
    std::int32_t phase = support[id].ok() ? 0 : -1;
    for_each_edge_in(graph, graph.nodes[id], [&](ir::NodeId from, bool data) {
      phase = std::max(phase, labels.phase[from] + rise(support, labels, from, id, data));
    });
    labels.phase.push_back(phase);
  }
  return labels;
}

PhaseLabels label_phases(const ir::Graph& graph, const std::vector<Support>& support, const Users& users) {
  PhaseLabels labels = earliest_phases(graph, support);
  labels.phase = Delay(graph, support, users, labels).run();
  return labels;
}

}  // namespace fxfuser::partitioner
