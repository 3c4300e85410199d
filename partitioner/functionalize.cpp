#include "partitioner/functionalize.h"

#include <algorithm>
#include <map>
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
    find_reshaped();
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
      if (is_outside(id) && current_[id] != id) out_.graph.write_backs.push_back({id, current_[id], out_.graph.versions[current_[id]]});
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
    for (ValueId id = 0; id < in_.values.size(); ++id) {
      if (written_as_[id] != ir::kNoValue) returned_for_[written_as_[id]].push_back(id);
    }
    sharers_.assign(in_.values.size(), 0);
    for (ValueId id = 0; id < in_.values.size(); ++id) {
      if (written_as_[id] == ir::kNoValue) ++sharers_[storage_[id]];
    }
  }

  /// An input whose sizes or strides change in place (transpose_; an op without a functional row may do so too) has no write-back:
  /// what is written to it is written when its turn comes.
  void find_reshaped() {
    for (NodeId id = 0; id < in_.nodes.size(); ++id) {
      const ir::Node& node = in_.nodes[id];
      const std::string name = functional_name(node.target);
      if (name.empty() || name == "aten.copy.default" || alias_[id].writes.size() != 1 || alias_[id].writes[0] >= node.args.size()) continue;
      const Attr& written = node.args[alias_[id].writes[0]];
      const ir::OpRow* row = table_.find_target(name).first;
      if (written.is_value() && is_outside(storage_[written.value()]) && (row == nullptr || changes_tensor(*row))) reshaped_.insert(storage_[written.value()]);
    }
  }

  /// unsqueeze_ and its kin change the tensor itself, not what it holds.
  static bool changes_tensor(const ir::OpRow& row) { return row.kind == ir::OpKind::View || row.strides == "view"; }

  /// Whether a write to a value can become a new value: nothing else aliases it, and none of its storage's writes stays.
  bool is_replaceable(ValueId value) const {
    const ValueId storage = storage_[value];
    return sharers_[storage] == 1 && touched_.count(storage) == 0 && reshaped_.count(storage) == 0;
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
      if (node.row == nullptr || node.form == nullptr || !has_hidden_writes(node)) continue;
      for (const std::string& param : node.row->writes) ir::for_each_value({ir::arg(node, param)}, add);
    }
    out_.written.assign(written.begin(), written.end());
  }

  void node(NodeId id) {
    ir::Node made = in_.nodes[id];
    const bool hidden = made.row != nullptr && made.form != nullptr && has_hidden_writes(made);
    const auto& writes = alias_[id].writes;
    for (Attr& attr : made.args) attr = renamed(attr, current_);
    if (writes.empty() && !hidden) return append(id, std::move(made));
    if (hidden && make_hidden_functional(id, made)) return;
    if (!hidden && writes.size() == 1 && make_functional(id, made, writes[0])) return;
    keep(id, std::move(made), hidden ? "its schema does not tell what it writes" : "its write could not be made functional");
  }

  /// A write of a value that nothing else aliases becomes a new value.
  bool make_functional(NodeId id, ir::Node& made, std::uint32_t position) {
    const Attr& written = in_.nodes[id].args.at(position);
    if (!written.is_value() || made.outputs.size() != 1) return false;
    const ValueId target = written.value();
    if (!is_replaceable(target)) return false;
    std::string name = functional_name(made.target);
    if (name == "aten.copy.default") return make_copy(id, made, target);
    const auto [row, form] = table_.find_target(name);
    if (name.empty() || row == nullptr || changes_tensor(*row) || !keeps_dtype(target, made)) return false;
    made.target = name;
    made.row = row;
    made.form = form;
    made.args.resize(form->names.size());
    const ValueId result = made.outputs[0];
    append(id, std::move(made));
    rename(target, result, true);
    return true;
  }

  /// A node with hidden writes as the one of its row that returns what is written.
  bool make_hidden_functional(NodeId id, ir::Node& made) {
    const ir::OpRow* row = table_.find(made.row->functional);
    if (row == nullptr || row->targets.empty()) return false;
    std::vector<ValueId> targets;
    for (const std::string& param : made.row->writes) {
      const Attr& written = ir::arg(in_.nodes[id], param);
      if (!written.is_value()) return false;
      const ValueId target = written.value();
      if (!in_.value(target).meta || !is_replaceable(target)) return false;
      if (std::find(targets.begin(), targets.end(), target) != targets.end()) return false;
      targets.push_back(target);
    }
    ir::Node call = made;
    call.target = row->targets[0].target;
    call.row = row;
    call.form = &row->targets[0];
    call.args.clear();
    for (const std::string& name : call.form->names) call.args.push_back(ir::arg(made, name));
    for (const auto& [name, check] : row_checks()) {
      // What the other overload can't take, the node does as it is.
      if (std::find(row->checks.begin(), row->checks.end(), name) != row->checks.end() && !check(out_.graph, call).ok()) return false;
    }
    call.outputs.clear();
    std::vector<ValueId> results;
    for (const std::string& output : row->outputs) {
      const auto& own = made.row->outputs;
      const auto& writes = made.row->writes;
      const auto same = std::find(own.begin(), own.end(), output);
      const auto write = std::find(writes.begin(), writes.end(), output);
      if (same != own.end()) {
        const ValueId value = made.outputs.at(static_cast<std::size_t>(same - own.begin()));
        out_.graph.values[value].output = static_cast<std::uint32_t>(call.outputs.size());
        call.outputs.push_back(value);
        continue;
      }
      const std::size_t at = write == writes.end() ? 0 : static_cast<std::size_t>(write - writes.begin());
      call.outputs.push_back(fresh_value(made.name + "_" + output, targets[at], id, call.outputs.size()));
      if (write != writes.end()) results.push_back(call.outputs.back());
    }
    append(id, std::move(call));
    for (std::size_t i = 0; i < targets.size(); ++i) rename(targets[i], results[i], !alias_[id].writes.empty());
    return true;
  }

  /// A further output of node `id`, with the meta of `like` as its forecast.
  ValueId fresh_value(std::string name, ValueId like, NodeId id, std::size_t output) {
    ir::Value made;
    made.name = std::move(name);
    made.meta = in_.value(like).meta;
    made.producer = id;
    made.output = static_cast<std::uint32_t>(output);
    const auto value = static_cast<ValueId>(out_.graph.values.size());
    out_.graph.values.push_back(std::move(made));
    current_.push_back(value);
    storage_.push_back(value);
    written_as_.push_back(ir::kNoValue);
    sharers_.push_back(1);
    return value;
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
    rename(target, result, true);
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

  /// From here on, readers of `target` (and of what in-place ops returned for it) see `result`. `counted`: the schema tells of
  /// the write, so that eager raises the tensor's version counter.
  void rename(ValueId target, ValueId result, bool counted) {
    const ValueId root = written_as_[target] == ir::kNoValue ? target : written_as_[target];
    std::vector<std::uint32_t>& versions = out_.graph.versions;
    versions.resize(out_.graph.values.size(), 0);
    versions[result] = versions[current_[root]] + (counted ? 1 : 0);
    current_[root] = result;
    if (const auto found = returned_for_.find(root); found != returned_for_.end()) {
      for (ValueId id : found->second) current_[id] = result;
    }
    current_[result] = result;
    if (is_outside(root)) out_.graph.writes.push_back({out_.graph.value(result).producer, root, result, counted});
  }

  /// Copies a node; it comes after the last write that was kept to a storage that it touches.
  void append(NodeId id, ir::Node made) {
    const std::set<ValueId> storages = storages_of(made);
    const auto fresh = static_cast<NodeId>(out_.graph.nodes.size());
    FXF_ASSERT(fresh == id, "nodes keep their places");
    for (ValueId storage : storages) {
      const auto found = since_write_.find(storage);
      if (found != since_write_.end() && touched_.count(storage) > 0) made.after.push_back(found->second.front());
      since_write_[storage].push_back(fresh);
    }
    for (ValueId output : made.outputs) out_.graph.values[output].producer = fresh;
    out_.graph.nodes.push_back(std::move(made));
  }

  /// The node writes as it did: everything that touches the storages it touches keeps its place around it.
  void keep(NodeId id, ir::Node made, const std::string& why) {
    out_.kept.push_back(made.name + ": " + why);
    made.row = nullptr;
    made.form = nullptr;
    std::set<NodeId> before;
    std::set<ValueId> storages;
    ir::for_each_value(in_.nodes[id].args, [&](ValueId value) { storages.insert(storage_[value]); });
    for (ValueId storage : storages) {
      const auto found = since_write_.find(storage);
      if (found != since_write_.end()) before.insert(found->second.begin(), found->second.end());
    }
    append(id, std::move(made));
    std::vector<NodeId>& after = out_.graph.nodes.back().after;
    before.insert(after.begin(), after.end());
    after.assign(before.begin(), before.end());
    for (ValueId storage : storages) since_write_[storage] = {id};
    touched_.insert(storages.begin(), storages.end());
  }

  std::set<ValueId> storages_of(const ir::Node& node) const {
    std::set<ValueId> out;
    ir::for_each_value(node.args, [&](ValueId value) { out.insert(storage_[value]); });
    for (ValueId output : node.outputs) out.insert(storage_[output]);
    return out;
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
  std::set<ValueId> reshaped_;          // storages of inputs whose own sizes or strides may change
  std::map<ValueId, std::vector<NodeId>> since_write_;    // by storage: its last write that was kept, then the nodes that touch it
  std::map<ValueId, std::vector<ValueId>> returned_for_;  // by value: those that in-place ops returned for it
};

}  // namespace

Functionalized functionalize(const ir::Graph& graph, const std::vector<AliasInfo>& alias, const ir::OpTable& table) {
  const bool writes = std::any_of(alias.begin(), alias.end(), [](const AliasInfo& info) { return !info.writes.empty(); });
  const bool hidden = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) { return node.form != nullptr && has_hidden_writes(node); });
  if (!writes && !hidden) return {graph, {}, {}};
  return Functionalizer(graph, alias, table).run();
}

}  // namespace fxfuser::partitioner
