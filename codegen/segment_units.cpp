#include "codegen/segment_units.h"

#include <algorithm>
#include <optional>

#include "codegen/view_memory.h"
#include "partitioner/ir/infer.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::codegen {
namespace {

constexpr int kCheapSlots = 8;
constexpr int kSpecialSlots = 8;

bool is_kind(const ir::Node& node, ir::OpKind kind) {
  return node.row != nullptr && node.row->kind == kind;
}
bool is_free(const ir::Node& node) {
  return is_kind(node, ir::OpKind::View) || is_kind(node, ir::OpKind::Factory);
}

/// The same addresses: strides of dims of size 1 don't matter.
bool same_strides(const ir::Sizes& sizes, const ir::Sizes& a, const ir::Sizes& b) {
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && a[d] != b[d]) return false;
  return true;
}

/// Strides of a view node's result on a source with these strides; nullopt when it isn't a view of the memory.
std::optional<ir::Sizes> view_strides(const ir::Graph& graph, const ir::Node& node, const ir::TensorMeta& source) {
  if (node.row->op == "reshape") return reshaped_strides(source.sizes, source.strides, graph.meta(node.outputs[0]).sizes);
  if (node.row->op == "flip") return std::nullopt;  // a copy in eager: strides are never negative
  return ir::infer(graph, node).outputs[0].strides;
}

ir::ValueId view_source(const ir::Node& node) {
  ir::ValueId source = ir::kNoValue;
  ir::for_each_value(node.args, [&](ir::ValueId id) {
    if (source == ir::kNoValue) source = id;
  });
  return source;
}

class Builder {
 public:
  Builder(const ir::Graph& canonical, const StoredAsIs& stored) : plain_(stored.plain) {
    units_.graph = canonical;
    units_.wanted.assign(canonical.values.size(), false);
    units_.readers.resize(canonical.values.size());
    units_.of_node.assign(canonical.nodes.size(), kNoUnit);
    stored_.assign(canonical.nodes.size(), false);
    for (const ir::NodeId node : stored.views) stored_[node] = true;
  }

  Units build() {
    mark_wanted();
    find_aliases();
    complete_strides();
    mark_live();
    for (ir::NodeId id = 0; id < graph().nodes.size(); ++id)
      if (live_[id] && is_unit(id)) add_unit(id);
    return std::move(units_);
  }

 private:
  ir::Graph& graph() { return units_.graph; }

  void mark_wanted() {
    const auto want = [&](ir::ValueId id) {
      if (graph().value(id).producer != ir::kNoNode) units_.wanted[id] = true;
    };
    ir::for_each_value(graph().outputs, want);
    for (const ir::WriteBack& write : graph().write_backs) want(write.source);
    for (ir::ValueId id = 0; id < graph().values.size(); ++id)
      if (units_.wanted[id] && has_repeats(graph().value(id))) want_source_of(id);
  }

  /// A value some of whose elements share memory: no kernel can store it.
  static bool has_repeats(const ir::Value& value) {
    if (value.kind != ir::ValueKind::Tensor || !value.meta || value.meta->strides.size() != value.meta->sizes.size()) return false;
    for (std::size_t d = 0; d < value.meta->sizes.size(); ++d)
      if (value.meta->strides[d] == 0 && value.meta->sizes[d] > 1) return true;
    return false;
  }

  /// An output with repeats is a view of what the group computes: that is stored, and the output becomes its alias.
  void want_source_of(ir::ValueId id) {
    while (graph().value(id).producer != ir::kNoNode && is_kind(graph().node(graph().value(id).producer), ir::OpKind::View)) {
      const ir::ValueId source = view_source(graph().node(graph().value(id).producer));
      if (source == ir::kNoValue) return;
      id = source;
    }
    ir::Value& root = graph().values[id];
    if (root.producer == ir::kNoNode || !root.meta || units_.wanted[id]) return;
    if (root.meta->strides.size() != root.meta->sizes.size() || !ir::is_non_overlapping_and_dense(*root.meta))
      root.meta->strides = ir::contiguous_strides(root.meta->sizes);
    units_.wanted[id] = true;
  }

  /// Outputs that are views of an input or of another output need no kernel.
  void find_aliases() {
    const std::size_t count = graph().values.size();
    std::vector<ir::ValueId> root(count, ir::kNoValue);  // of views that are memory of another value
    for (ir::ValueId id = 0; id < count; ++id) {
      const ir::Value& value = graph().value(id);
      if (value.kind == ir::ValueKind::Tensor && value.meta && (value.producer == ir::kNoNode || units_.wanted[id]))
        root[id] = id;
    }
    for (const ir::Node& node : graph().nodes) {
      if (!is_kind(node, ir::OpKind::View)) continue;
      const ir::ValueId source = view_source(node), out = node.outputs[0];
      if (source == ir::kNoValue || root[source] == ir::kNoValue) continue;
      const std::optional<ir::Sizes> strides = view_strides(graph(), node, graph().meta(source));
      if (!strides) continue;
      if (units_.wanted[out]) {
        if (!same_strides(graph().meta(out).sizes, graph().meta(out).strides, *strides)) continue;
        units_.wanted[out] = false;
        units_.aliases.emplace_back(out, root[source]);
      } else {
        graph().values[out].meta->strides = *strides;
      }
      root[out] = root[source];
    }
  }

  /// A value between two segments is stored: it needs strides that no two elements share.
  void complete_strides() {
    for (ir::ValueId id = 0; id < graph().values.size(); ++id) {
      ir::Value& value = graph().values[id];
      if (value.producer == ir::kNoNode || value.kind != ir::ValueKind::Tensor || !value.meta || units_.wanted[id]) continue;
      const bool view = is_kind(graph().node(value.producer), ir::OpKind::View);
      if (view && !stored_[value.producer]) continue;
      // A view that is stored is copied so that what is read through it lies in its order.
      const bool plain = view || std::find(plain_.begin(), plain_.end(), id) != plain_.end();
      if (plain || value.meta->strides.size() != value.meta->sizes.size() || !ir::is_non_overlapping_and_dense(*value.meta))
        value.meta->strides = ir::contiguous_strides(value.meta->sizes);
    }
  }

  void mark_live() {
    live_.assign(graph().nodes.size(), false);
    for (ir::NodeId id = static_cast<ir::NodeId>(graph().nodes.size()); id-- > 0;) {
      const ir::Node& node = graph().node(id);
      for (const ir::ValueId out : node.outputs) live_[id] = live_[id] || units_.wanted[out];
      if (!live_[id]) continue;
      ir::for_each_value(node.args, [&](ir::ValueId value) {
        const ir::NodeId producer = graph().value(value).producer;
        if (producer != ir::kNoNode) live_[producer] = true;
      });
    }
  }

  bool is_unit(ir::NodeId id) {
    const ir::Node& node = graph().node(id);
    return !is_free(node) || stored_[id] || units_.wanted[node.outputs[0]];
  }

  void add_unit(ir::NodeId id) {
    const ir::Node& node = graph().node(id);
    Unit unit;
    unit.node = id;
    collect(node, unit);
    for (const ir::NodeId before : node.after)
      if (units_.of_node[before] != kNoUnit) unit.after.push_back(units_.of_node[before]);
    for (const ir::ValueId out : node.outputs) unit.space = std::max(unit.space, graph().meta(out).numel());
    if (is_kind(node, ir::OpKind::Reduction))
      ir::for_each_value(node.args, [&](ir::ValueId value) {
        if (graph().value(value).meta) unit.space = std::max(unit.space, graph().meta(value).numel());
      });
    unit.pointwise = is_kind(node, ir::OpKind::Pointwise) || is_kind(node, ir::OpKind::Cast);
    if (node.row != nullptr) unit.slots = std::max(node.row->cost_slots, 1) + kSpecialSlots * node.row->cost_special;
    unit.cheap = (unit.pointwise || is_free(node)) && unit.slots <= kCheapSlots;
    const auto self = static_cast<UnitId>(units_.all.size());
    for (const ir::ValueId read : unit.reads) units_.readers[read].push_back(self);
    units_.of_node[id] = self;
    units_.all.push_back(std::move(unit));
  }

  /// The roots that a unit reads, and the free nodes on the way.
  void collect(const ir::Node& node, Unit& unit) {
    std::vector<const ir::Node*> stack{&node};
    while (!stack.empty()) {
      const ir::Node* top = stack.back();
      stack.pop_back();
      ir::for_each_value(top->args, [&](ir::ValueId value) {
        const ir::NodeId producer = graph().value(value).producer;
        if (producer != ir::kNoNode && units_.of_node[producer] == kNoUnit) {
          if (std::find(unit.free.begin(), unit.free.end(), producer) != unit.free.end()) return;
          unit.free.push_back(producer);
          stack.push_back(&graph().node(producer));
        } else if (graph().value(value).kind == ir::ValueKind::Tensor) {
          unit.reads.push_back(value);
        }
      });
    }
    std::sort(unit.free.begin(), unit.free.end());
    std::sort(unit.reads.begin(), unit.reads.end());
    unit.reads.erase(std::unique(unit.reads.begin(), unit.reads.end()), unit.reads.end());
  }

  Units units_;
  const std::vector<ir::ValueId>& plain_;
  std::vector<bool> stored_, live_;
};

}  // namespace

std::int64_t Units::bytes(ir::ValueId value) const {
  const ir::TensorMeta& meta = graph.meta(value);
  return meta.numel() * ir::itemsize(meta.dtype);
}

UnitId Units::producer(ir::ValueId value) const {
  const ir::NodeId node = graph.value(value).producer;
  return node == ir::kNoNode ? kNoUnit : of_node[node];
}

Units make_units(const ir::Graph& canonical, const StoredAsIs& stored) {
  return Builder(canonical, stored).build();
}

}  // namespace fxfuser::codegen
