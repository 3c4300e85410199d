// Clean-up of a canonical graph: repeated nodes once, casts and views that change nothing gone, dead nodes gone. A value that
// is an output keeps its meta. What eager has in two memories and a caller can see stays two values.

#include <map>
#include <set>
#include <unordered_map>

#include "partitioner/decompose.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/text.h"

namespace fxfuser::partitioner {
namespace {

using ir::Attr;
using ir::ValueId;

Attr renamed(const Attr& attr, const std::vector<ValueId>& names) {
  if (attr.is_value()) return ir::ValueRef{names[attr.value()]};
  if (!attr.is_list()) return attr;
  ir::AttrList out;
  for (const Attr& item : attr.list()) out.push_back(renamed(item, names));
  return out;
}

std::vector<bool> alive_nodes(const ir::Graph& graph) {
  std::vector<bool> wanted(graph.values.size(), false), alive(graph.nodes.size(), false);
  for (const Attr& output : graph.outputs) {
    if (output.is_value()) wanted[output.value()] = true;
  }
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {
    for (ValueId value : graph.nodes[id].outputs) alive[id] = alive[id] || wanted[value];
    if (alive[id]) ir::for_each_value(graph.nodes[id].args, [&](ValueId value) { wanted[value] = true; });
  }
  return alive;
}

/// By value: whether it or a view of it is an output.
std::vector<bool> seen_outside(const ir::Graph& graph, const std::vector<bool>& is_output) {
  std::vector<bool> seen = is_output;
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {
    const ir::Node& node = graph.nodes[id];
    if (ir::is_memory_view(*node.row) && seen[node.outputs[0]]) seen[ir::arg(node, "self").value()] = true;
  }
  return seen;
}

/// The value whose memory a view reads, or the value itself.
ValueId memory_root(const ir::Graph& graph, ValueId value) {
  for (ir::NodeId id = graph.value(value).producer; id != ir::kNoNode && ir::is_memory_view(*graph.node(id).row); id = graph.value(value).producer) {
    value = ir::arg(graph.node(id), "self").value();
  }
  return value;
}

/// The value a node stands for without doing anything: a view to the same sizes, a cast to the same dtype and layout.
std::optional<ValueId> no_op(const ir::Graph& out, const ir::Node& node, const ir::TensorMeta& result) {
  if (node.row->kind == ir::OpKind::Cast) {
    const ValueId self = ir::arg(node, "self").value();
    return out.meta(self).dtype == result.dtype && out.meta(self).strides == result.strides ? std::optional(self) : std::nullopt;
  }
  if (!ir::is_memory_view(*node.row)) return std::nullopt;
  const ValueId self = ir::arg(node, "self").value();
  if (out.meta(self).sizes != result.sizes) return std::nullopt;
  if (node.row->op == "permute") {
    const ir::Sizes dims = ir::arg(node, "dims").as_sizes();
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] != static_cast<std::int64_t>(d) && result.sizes[d] != 1) return std::nullopt;
    }
  }
  return self;
}

class Simplifier {
 public:
  explicit Simplifier(const ir::Graph& canonical) : in_(canonical), names_(canonical.values.size(), ir::kNoValue), is_output_(canonical.values.size(), false) {
    for (const Attr& output : in_.outputs) {
      if (output.is_value()) is_output_[output.value()] = true;
    }
    seen_ = seen_outside(in_, is_output_);
  }

  ir::Graph run() {
    out_.name = in_.name;
    for (ValueId input : in_.inputs) {
      const ir::Value& value = in_.value(input);
      names_[input] = out_.add_input(value.name, value.meta, value.kind);
      claim(names_[input]);
    }
    const std::vector<bool> alive = alive_nodes(in_);
    for (std::size_t id = 0; id < in_.nodes.size(); ++id) {
      if (alive[id]) node(in_.nodes[id]);
    }
    for (const Attr& output : in_.outputs) out_.outputs.push_back(renamed(output, names_));
    return std::move(out_);
  }

 private:
  /// The caller sees this value of the new graph: a second one that it sees may not be the same.
  void claim(ValueId value) {
    returned_.insert(value);
    memories_.insert(memory_root(out_, value));
  }

  /// Whether `value` of the new graph may be what `result` is to the caller.
  bool may_stand(ValueId value, ValueId result, bool view) const {
    if (view) return !is_output_[result] || returned_.count(value) == 0;
    return !seen_[result] || memories_.count(memory_root(out_, value)) == 0;
  }

  void stand_in(ValueId value, ValueId result) {
    names_[result] = value;
    if (is_output_[result]) claim(value);
    else if (seen_[result]) memories_.insert(memory_root(out_, value));
  }

  void node(const ir::Node& original) {
    ir::Node made = original;
    for (Attr& attr : made.args) attr = renamed(attr, names_);
    const ValueId first = original.outputs[0];
    const ir::TensorMeta& result = in_.meta(first);
    const bool view = ir::is_memory_view(*original.row);
    if (const auto same = no_op(out_, made, result); same && (!is_output_[first] || out_.meta(*same) == result) && may_stand(*same, first, view)) {
      return stand_in(*same, first);
    }
    std::string key = made.target;
    for (const Attr& attr : made.args) key += "|" + ir::print(attr, nullptr);
    if (const auto found = known_.find(key); found != known_.end()) {
      const std::vector<ValueId>& kept = out_.nodes[found->second].outputs;
      // Equal nodes may differ in the strides they were given: an output keeps its own.
      bool stands = !is_output_[first] || out_.meta(kept[0]) == result;
      for (std::size_t i = 0; i < kept.size(); ++i) stands = stands && may_stand(kept[i], original.outputs[i], view);
      if (stands) {
        for (std::size_t i = 0; i < kept.size(); ++i) stand_in(kept[i], original.outputs[i]);
        return;
      }
    }
    known_.emplace(std::move(key), add(std::move(made), original));
  }

  ir::NodeId add(ir::Node made, const ir::Node& original) {
    const ir::NodeId id = out_.add_node(std::move(made), original.outputs.size());
    for (std::size_t i = 0; i < original.outputs.size(); ++i) {
      const ValueId fresh = out_.nodes[id].outputs[i];
      out_.values[fresh].meta = in_.value(original.outputs[i]).meta;
      out_.values[fresh].name = in_.value(original.outputs[i]).name;
      stand_in(fresh, original.outputs[i]);
    }
    return id;
  }

  const ir::Graph& in_;
  ir::Graph out_;
  std::vector<ValueId> names_;  // by value: the one of the new graph
  std::vector<bool> is_output_, seen_;
  std::map<std::string, ir::NodeId> known_;
  std::set<ValueId> returned_;  // values of the new graph that are inputs or outputs
  std::set<ValueId> memories_;  // those that they are memory of
};

}  // namespace

ir::Graph simplify(const ir::Graph& canonical) { return Simplifier(canonical).run(); }

}  // namespace fxfuser::partitioner
