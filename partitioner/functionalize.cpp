#include "partitioner/functionalize.h"

#include <algorithm>
#include <set>

#include "partitioner/checks.h"
#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {
namespace {

using ir::Attr;
using ir::NodeId;
using ir::ValueId;

/// "aten.add_.Tensor" -> "aten.add.Tensor"; empty when the op does not end in an underscore.
std::string functional_name(const std::string& target) {
  const std::size_t dot = target.rfind('.');
  if (dot == std::string::npos || dot == 0 || target[dot - 1] != '_' || (dot > 1 && target[dot - 2] == '_')) return {};
  return target.substr(0, dot - 1) + target.substr(dot);
}

Attr renamed(const Attr& attr, const std::vector<ValueId>& current) {
  if (attr.is_value()) return ir::ValueRef{current[attr.value()]};
  if (!attr.is_list()) return attr;
  ir::AttrList out;
  for (const Attr& item : attr.list()) out.push_back(renamed(item, current));
  return out;
}

class Functionalizer {
 public:
  Functionalizer(const ir::Graph& graph, const std::vector<AliasInfo>& alias, const ir::OpTable& table) : in_(graph), alias_(alias), table_(table), current_(graph.values.size()) {
    FXF_ASSERT(alias.size() == graph.nodes.size(), "{} nodes and {} alias records", graph.nodes.size(), alias.size());
    for (ValueId id = 0; id < graph.values.size(); ++id) current_[id] = id;
    forget_writes_of_inference();
    find_storages();
  }

  Functionalized run() {
    out_.graph = in_;
    out_.graph.nodes.clear();
    find_written();
    for (NodeId id = 0; id < in_.nodes.size(); ++id) node(id);
    // An input that was written is returned as itself, after its write-back.
    for (Attr& output : out_.graph.outputs) {
      if (output.is_value() && is_outside(output.value())) continue;
      output = output_value(output);
    }
    for (ValueId id = 0; id < in_.values.size(); ++id) {
      if (is_outside(id) && current_[id] != id) out_.graph.write_backs.push_back({id, current_[id]});
    }
    return std::move(out_);
  }

 private:
  bool is_outside(ValueId value) const { return in_.value(value).producer == ir::kNoNode; }

  Attr output_value(const Attr& attr) const {
    if (!attr.is_value()) return attr;
    // The result of an in-place op on an input is that input.
    const ValueId root = written_as_[attr.value()];
    if (root != ir::kNoValue && is_outside(root)) return ir::ValueRef{root};
    return ir::ValueRef{current_[attr.value()]};
  }

  /// A schema marks the running statistics of a batch norm as written; the row knows that only training does that.
  void forget_writes_of_inference() {
    for (NodeId id = 0; id < in_.nodes.size(); ++id) {
      const ir::Node& node = in_.nodes[id];
      if (node.row != nullptr && node.form != nullptr && !node.row->writes.empty() && !has_hidden_writes(node)) alias_[id].writes.clear();
    }
  }

  /// storage_[v]: a number shared by all values that may alias v; views_[s]: how many values share storage s.
  void find_storages() {
    storage_.resize(in_.values.size());
    written_as_.assign(in_.values.size(), ir::kNoValue);
    for (ValueId id = 0; id < in_.values.size(); ++id) storage_[id] = id;
    for (NodeId id = 0; id < in_.nodes.size(); ++id) {
      const ir::Node& node = in_.nodes[id];
      for (std::size_t i = 0; i < node.outputs.size() && i < alias_[id].views.size(); ++i) {
        const std::int32_t at = alias_[id].views[i];
        if (at < 0 || static_cast<std::size_t>(at) >= node.args.size() || !node.args[static_cast<std::size_t>(at)].is_value()) continue;
        const ValueId source = node.args[static_cast<std::size_t>(at)].value();
        storage_[node.outputs[i]] = storage_[source];
        const auto& writes = alias_[id].writes;
        const bool written = std::find(writes.begin(), writes.end(), static_cast<std::uint32_t>(at)) != writes.end();
        if (written) written_as_[node.outputs[i]] = written_as_[source] == ir::kNoValue ? source : written_as_[source];
      }
    }
    sharers_.assign(in_.values.size(), 0);
    for (ValueId id = 0; id < in_.values.size(); ++id) {
      if (written_as_[id] == ir::kNoValue) ++sharers_[storage_[id]];
    }
  }

  void find_written() {
    std::set<ValueId> written;
    for (NodeId id = 0; id < in_.nodes.size(); ++id) {
      const ir::Node& node = in_.nodes[id];
      const auto add = [&](ValueId value) {
        if (is_outside(storage_[value])) written.insert(storage_[value]);
      };
      for (std::uint32_t at : alias_[id].writes) {
        if (at < node.args.size()) ir::for_each_value({node.args[at]}, add);
      }
      if (node.row != nullptr && node.form != nullptr && has_hidden_writes(node)) ir::for_each_value(node.args, add);
    }
    out_.written.assign(written.begin(), written.end());
  }

  void node(NodeId id) {
    ir::Node made = in_.nodes[id];
    const bool hidden = made.row != nullptr && made.form != nullptr && has_hidden_writes(made);
    const auto& writes = alias_[id].writes;
    for (Attr& attr : made.args) attr = renamed(attr, current_);
    if (writes.empty() && !hidden) return append(id, std::move(made));
    if (!hidden && writes.size() == 1 && make_functional(id, made, writes[0])) return;
    keep(id, std::move(made), hidden ? "its schema does not tell what it writes" : "its write could not be made functional");
  }

  /// A write of a value that nothing else aliases becomes a new value.
  bool make_functional(NodeId id, ir::Node& made, std::uint32_t position) {
    const Attr& written = in_.nodes[id].args.at(position);
    if (!written.is_value() || made.outputs.size() != 1) return false;
    const ValueId target = written.value();
    if (sharers_[storage_[target]] != 1 || touched_.count(storage_[target]) > 0) return false;
    std::string name = functional_name(made.target);
    if (name == "aten.copy.default") return make_copy(id, made, target);
    const auto [row, form] = table_.find_target(name);
    // unsqueeze_ and its kin change the tensor itself, not what it holds.
    if (name.empty() || row == nullptr || row->kind == ir::OpKind::View || row->strides == "view" || !keeps_dtype(target, made)) return false;
    made.target = name;
    made.row = row;
    made.form = form;
    made.args.resize(form->names.size());
    const ValueId result = made.outputs[0];
    append(id, std::move(made));
    rename(target, result);
    return true;
  }

  /// copy_(target, source): the source in the target's dtype and shape.
  bool make_copy(NodeId id, ir::Node& made, ValueId target) {
    const auto& to = in_.value(target).meta;
    if (!to || made.args.size() < 2 || !made.args[1].is_value()) return false;
    const auto& from = out_.graph.value(made.args[1].value()).meta;
    const auto [row, form] = table_.find_target("aten._to_copy.default");
    if (!from || from->sizes != to->sizes || from->device != to->device || row == nullptr) return false;
    ir::Node cast = made;
    cast.target = "aten._to_copy.default";
    cast.row = row;
    cast.form = form;
    cast.args = {made.args[1], to->dtype, {}, {}, {}, false, {}};
    const ValueId result = cast.outputs[0];
    append(id, std::move(cast));
    rename(target, result);
    return true;
  }

  /// An in-place op computes in the result's own dtype only where promotion would give just that.
  bool keeps_dtype(ValueId target, const ir::Node& made) const {
    const auto& before = in_.value(target).meta;
    if (!before) return false;
    bool same = true;
    ir::for_each_value(made.args, [&](ValueId value) {
      const auto& meta = out_.graph.value(value).meta;
      if (!meta) return;
      if (meta->sizes.empty() && !before->sizes.empty()) {
        same = same && (ir::is_floating(before->dtype) || !ir::is_floating(meta->dtype));  // promotes by its category only
        return;
      }
      same = same && (ir::promote(meta->dtype, before->dtype) == before->dtype) && meta->sizes.size() <= before->sizes.size();
    });
    return same;
  }

  /// From here on, readers of `target` (and of what in-place ops returned for it) see `result`.
  void rename(ValueId target, ValueId result) {
    const ValueId root = written_as_[target] == ir::kNoValue ? target : written_as_[target];
    for (ValueId id = 0; id < in_.values.size(); ++id) {
      if (id == root || written_as_[id] == root) current_[id] = result;
    }
    current_[result] = result;
  }

  void append(NodeId id, ir::Node made) {
    order_after(id, made);
    map_after(made);
    const auto fresh = static_cast<NodeId>(out_.graph.nodes.size());
    for (ValueId output : made.outputs) out_.graph.values[output].producer = fresh;
    new_id_.resize(in_.nodes.size(), ir::kNoNode);
    new_id_[id] = fresh;
    out_.graph.nodes.push_back(std::move(made));
  }

  void map_after(ir::Node& made) const {
    for (NodeId& before : made.after) before = new_id_[before];
  }

  /// The node writes as it did: everything that touches the storages it touches keeps its place around it.
  void keep(NodeId id, ir::Node made, const std::string& why) {
    out_.kept.push_back(made.name + ": " + why);
    made.row = nullptr;
    made.form = nullptr;
    ir::for_each_value(in_.nodes[id].args, [&](ValueId value) { touched_.insert(storage_[value]); });
    const auto fresh = static_cast<NodeId>(out_.graph.nodes.size());
    append(id, std::move(made));
    ir::Node& placed = out_.graph.nodes.back();
    for (NodeId before = 0; before < fresh; ++before) {
      if (touches(out_.graph.nodes[before])) placed.after.push_back(before);
    }
    last_kept_ = fresh;
  }

  bool touches(const ir::Node& node) const {
    bool found = false;
    const auto look = [&](ValueId value) { found = found || touched_.count(storage_[value]) > 0; };
    ir::for_each_value(node.args, look);
    for (ValueId output : node.outputs) look(output);
    return found;
  }

  void order_after(NodeId, ir::Node& made) const {
    if (last_kept_ != ir::kNoNode && touches(made)) made.after.push_back(last_kept_);
  }

  const ir::Graph& in_;
  std::vector<AliasInfo> alias_;
  const ir::OpTable& table_;
  Functionalized out_;
  std::vector<ValueId> current_;        // by value: the one that holds its contents now
  std::vector<ValueId> storage_;
  std::vector<ValueId> written_as_;     // by value: the value that an in-place op returned it for
  std::vector<std::uint32_t> sharers_;  // by storage
  std::set<ValueId> touched_;           // storages with a write that was kept
  std::vector<NodeId> new_id_;
  NodeId last_kept_ = ir::kNoNode;
};

}  // namespace

Functionalized functionalize(const ir::Graph& graph, const std::vector<AliasInfo>& alias, const ir::OpTable& table) {
  const bool writes = std::any_of(alias.begin(), alias.end(), [](const AliasInfo& info) { return !info.writes.empty(); });
  const bool hidden = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) { return node.form != nullptr && has_hidden_writes(node); });
  if (!writes && !hidden) return {graph, {}, {}};
  return Functionalizer(graph, alias, table).run();
}

}  // namespace fxfuser::partitioner
