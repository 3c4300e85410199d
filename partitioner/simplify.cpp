// Clean-up of a canonical graph: repeated nodes once, casts and views that change nothing gone, dead nodes gone. A value that
// is an output keeps its meta.

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

/// The value a node stands for without doing anything: a view to the same sizes, a cast to the same dtype and layout.
std::optional<ValueId> no_op(const ir::Graph& out, const ir::Node& node, const ir::TensorMeta& result) {
  if (node.row->kind == ir::OpKind::Cast) {
    const ValueId self = ir::arg(node, "self").value();
    return out.meta(self).dtype == result.dtype && out.meta(self).strides == result.strides ? std::optional(self) : std::nullopt;
  }
  if (node.row->kind != ir::OpKind::View || node.row->op == "flip") return std::nullopt;
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

}  // namespace

ir::Graph simplify(const ir::Graph& canonical) {
  ir::Graph out;
  out.name = canonical.name;
  std::vector<ValueId> names(canonical.values.size(), ir::kNoValue);
  for (ValueId input : canonical.inputs) {
    const ir::Value& value = canonical.value(input);
    names[input] = out.add_input(value.name, value.meta, value.kind);
  }
  std::vector<bool> is_output(canonical.values.size(), false);
  for (const Attr& output : canonical.outputs) {
    if (output.is_value()) is_output[output.value()] = true;
  }
  const std::vector<bool> alive = alive_nodes(canonical);
  std::map<std::string, ir::NodeId> seen;
  std::set<ValueId> returned;  // values of the new graph that are outputs
  for (std::size_t id = 0; id < canonical.nodes.size(); ++id) {
    if (!alive[id]) continue;
    ir::Node node = canonical.nodes[id];
    for (Attr& attr : node.args) attr = renamed(attr, names);
    const bool output = is_output[node.outputs[0]];
    const ir::TensorMeta& result = canonical.meta(canonical.nodes[id].outputs[0]);
    if (const auto same = no_op(out, node, result); same && (!output || out.meta(*same) == result)) {
      names[canonical.nodes[id].outputs[0]] = *same;
      continue;
    }
    std::string key = node.target;
    for (const Attr& attr : node.args) key += "|" + ir::print(attr, nullptr);
    if (const auto found = seen.find(key); found != seen.end()) {
      const std::vector<ValueId>& kept = out.nodes[found->second].outputs;
      // Equal nodes may differ in the strides they were given: an output keeps its own. Two outputs are two tensors.
      if (!output || (out.meta(kept[0]) == result && returned.count(kept[0]) == 0)) {
        if (output) returned.insert(kept.begin(), kept.end());
        for (std::size_t i = 0; i < kept.size(); ++i) names[canonical.nodes[id].outputs[i]] = kept[i];
        continue;
      }
    }
    const std::vector<ValueId> outputs = node.outputs;
    const ir::NodeId made = out.add_node(std::move(node), outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId fresh = out.nodes[made].outputs[i];
      out.values[fresh].meta = canonical.value(outputs[i]).meta;
      out.values[fresh].name = canonical.value(outputs[i]).name;
      names[outputs[i]] = fresh;
      if (is_output[outputs[i]]) returned.insert(fresh);
    }
    seen.emplace(std::move(key), made);
  }
  for (const Attr& output : canonical.outputs) out.outputs.push_back(renamed(output, names));
  return out;
}

}  // namespace fxfuser::partitioner
