#include "executor/frontend/group_definition.h"

#include <algorithm>
#include <map>
#include <set>

#include "executor/frontend/definition.h"
#include "executor/frontend/python_text.h"
#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

using Named = std::vector<std::pair<std::string, ir::Attr>>;

bool is_short(ir::DType dtype) { return dtype == ir::DType::Float16 || dtype == ir::DType::BFloat16; }

/// "squeeze" of "aten.squeeze.dim".
std::string middle(std::string_view target) {
  const std::size_t first = target.find('.'), last = target.rfind('.');
  return first == std::string_view::npos || last <= first ? std::string(target) : std::string(target.substr(first + 1, last - first - 1));
}

/// The names under which `fd.ops` may have what the node means: its row's, its own, those of the row's other overloads, that of its
/// copy (results of a definition are no views).
std::vector<std::string> candidates(const ir::Node& node) {
  std::vector<std::string> names = {node.row->op, middle(node.target)};
  for (const ir::OpTarget& target : node.row->targets) {
    if (const std::string name = middle(target.target); std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  names.push_back(middle(node.target) + "_copy");
  return names;
}

/// The node's arguments under the names of its row's parameters.
Named row_arguments(const ir::Node& node) {
  Named out;
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    const std::string name = node.form == nullptr ? node.row->params.at(i) : i < node.form->names.size() ? node.form->names[i] : "";
    if (!name.empty()) out.emplace_back(name, node.args[i]);
  }
  if (node.form != nullptr) out.insert(out.end(), node.form->fixed.begin(), node.form->fixed.end());
  return out;
}

/// What says only where or how a result lies: a definition runs where its inputs are.
bool is_placement(const ir::Attr& attr, const ir::Device& device) {
  if (const auto* place = std::get_if<ir::Device>(&attr.v)) return *place == device;
  const auto* layout = std::get_if<ir::Layout>(&attr.v);
  return std::holds_alternative<ir::MemoryFormat>(attr.v) || (layout != nullptr && *layout == ir::Layout::Strided);
}

class Writer {
 public:
  Writer(const OpSource& ops, const Group& group) : ops_(ops), group_(group), definition_(FusionDefinition::make(ops, group.nodes.size() * 3 + group.inputs.size() * 2 + group.outputs.size() * 2 + 1)) {
    definition_->enter();
  }

  std::vector<Record> write() {
    for (std::size_t i = 0; i < group_.inputs.size(); ++i) handles_[group_.inputs[i]] = input(group_.inputs[i], group_.metas.at(i));
    for (const ir::NodeId id : group_.nodes) node(group_.graph.node(id));
    for (const ir::ValueId id : group_.outputs) definition_->add_output(rounded(id));
    return definition_->records();
  }

 private:
  Handle input(ir::ValueId id, const ir::TensorMeta& meta) {
    if (group_.graph.value(id).kind != ir::ValueKind::Tensor) return definition_->define_scalar(meta.dtype);
    TensorRecord record;
    const ir::Sizes dense = ir::contiguous_strides(meta.sizes);
    for (std::size_t d = 0; d < meta.sizes.size(); ++d) {
      record.sizes.push_back(meta.sizes[d] == 1 ? 1 : -1);
      record.contiguity.push_back(meta.sizes[d] == 1 ? std::int8_t{-1} : static_cast<std::int8_t>(meta.strides[d] == dense[d]));
    }
    record.dtype = meta.dtype;
    record.is_cpu = meta.sizes.empty() && meta.device.kind == ir::DeviceKind::Cpu && group_.device.kind != ir::DeviceKind::Cpu;
    return definition_->define_tensor(std::move(record));
  }

  /// The dtype that the graph gives a value, where it says one.
  std::optional<ir::DType> wanted(ir::ValueId id) const {
    const ir::Value& value = group_.graph.value(id);
    return value.meta && value.kind == ir::ValueKind::Tensor ? std::optional<ir::DType>(value.meta->dtype) : std::nullopt;
  }

  /// A value in the graph's dtype: pointwise ops of a definition leave 16-bit floats wide.
  Handle rounded(ir::ValueId id) {
    const Handle handle = handles_.at(id);
    const auto have = definition_->dtype(handle), want = wanted(id);
    if (!have || !want || *have == *want) return handle;
    if (const auto known = rounded_.find(id); known != rounded_.end()) return known->second;
    return rounded_[id] = definition_->call("cast", {handle, *want});
  }

  /// An argument with handles for values; `wide`: the op takes 16-bit floats as they stand in the definition.
  Argument argument(const ir::Attr& attr, bool wide) {
    if (attr.is_value()) return wide ? handles_.at(attr.value()) : rounded(attr.value());
    if (!attr.is_list()) return Argument(attr);
    std::vector<Argument> items;
    for (const ir::Attr& item : attr.list()) items.push_back(argument(item, wide));
    return Argument(std::move(items));
  }

  /// The node's arguments in the order of a signature whose parameters are called `names` in the row; nullopt when it has no place
  /// for one.
  std::optional<std::vector<ir::Attr>> placed(const OpSignature& op, const std::vector<std::string>& names, const ir::OpRow& row, const Named& given) const {
    std::vector<std::optional<ir::Attr>> slots(op.params.size());
    for (const auto& [name, value] : given) {
      const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
      const bool placement = is_placement(value, group_.device);
      if (at < slots.size() && !(placement && op.params[at].fallback)) {
        if (!(value.is_none() && op.params[at].fallback)) slots[at] = value;
        continue;
      }
      const auto fallback = row.defaults.find(name);
      const bool implied = value.is_none() || placement || (fallback != row.defaults.end() && is_same(fallback->second, value));
      if (at == slots.size() && !implied && !fixed_by_all(op, name, value)) return std::nullopt;
    }
    std::vector<ir::Attr> out;
    for (std::size_t i = 0; i < op.params.size(); ++i) {
      if (!slots[i] && !op.params[i].fallback && op.params[i].row != "_") return std::nullopt;
      if (op.composite != nullptr && !op.params[i].fallback && slots[i]->is_none()) return std::nullopt;  // no schema that refuses it
      out.push_back(slots[i] ? *slots[i] : op.params[i].fallback.value_or(ir::Attr()));
    }
    return out;
  }

  /// What the row calls the op's parameters; empty when the op is not this row's.
  static std::vector<std::string> row_names(const OpSignature& op, const ir::OpRow& row) {
    std::vector<std::string> names;
    if (op.row == &row || (op.row != nullptr && op.row->op == row.op + "_copy")) {
      for (const SignatureParam& param : op.params) names.push_back(param.row);
    } else if (op.row == nullptr && op.overloads.size() == 1) {
      // One of the row's overloads under ATen's own name and parameters.
      const auto form = std::find_if(row.targets.begin(), row.targets.end(), [&](const ir::OpTarget& target) { return target.target == op.overloads[0].target; });
      if (form != row.targets.end()) names = form->names;
    }
    return names;
  }

  static bool fixed_by_all(const OpSignature& op, const std::string& name, const ir::Attr& value) {
    return !op.overloads.empty() && std::all_of(op.overloads.begin(), op.overloads.end(), [&](const OpOverload& overload) {
      const auto fixed = overload.fixed.find(name);
      return fixed != overload.fixed.end() && is_same(fixed->second, value);
    });
  }

  /// Calls one op of `fd.ops`, if it means the node; false when it does not.
  bool called(const OpSignature& op, const ir::Node& node, const Named& given) {
    const std::vector<std::string> names = row_names(op, *node.row);
    if (names.empty()) return false;
    const auto args = placed(op, names, *node.row, given);
    if (!args) return false;
    std::vector<Argument> arguments;
    for (const ir::Attr& attr : *args) arguments.push_back(argument(attr, op.widens));
    std::vector<Handle> results;
    try {
      results = definition_->op(op.name, std::move(arguments));
    } catch (const Error&) {
      return false;  // an op of this name that takes other arguments; nothing was recorded
    }
    if (results.size() != node.outputs.size()) return false;
    for (std::size_t i = 0; i < results.size(); ++i) keep(node.outputs[i], std::move(results[i]));
    return true;
  }

  /// What an op makes in another dtype than the graph's is cast at once, but for the wide form of 16 bits; so is a 16-bit result
  /// that no rule tells of, since the ops after it could not widen it.
  void keep(ir::ValueId id, Handle handle) {
    const auto have = definition_->dtype(handle), want = wanted(id);
    const bool other = have && want && *have != *want && !(is_short(*want) && *have == ir::DType::Float32);
    const bool untold = !have && want && is_short(*want);
    handles_[id] = other || untold ? definition_->call("cast", {handle, *want}) : std::move(handle);
  }

  void node(const ir::Node& node) {
    FXF_CHECK(node.row != nullptr, Value, "{} ({}) has no row", node.name, node.target);
    const Named given = row_arguments(node);
    for (const std::string& name : candidates(node)) {
      const OpSignature* op = ops_.find(name);
      if (op != nullptr && called(*op, node, given)) return;
    }
    throw_error(ErrorKind::Value, fmt::format("{} ({}) has no spelling in fd.ops", node.name, node.target));
  }

  const OpSource& ops_;
  const Group& group_;
  std::shared_ptr<FusionDefinition> definition_;
  std::map<ir::ValueId, Handle> handles_, rounded_;
};

}  // namespace

std::vector<Record> define_group(const OpSource& ops, const Group& group) { return Writer(ops, group).write(); }

std::string group_text(const OpSource& ops, const Group& group, const std::string& function) {
  std::string nodes, inputs;
  for (const ir::NodeId id : group.nodes) nodes += " " + group.graph.node(id).name;
  for (const ir::ValueId id : group.inputs) inputs += (inputs.empty() ? "" : ", ") + group.graph.value(id).name;
  const std::string head = fmt::format("# {}({}):{}", function, inputs, nodes);
  try {
    return head + "\n" + python_text(define_group(ops, group), ops, function);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) throw;
    return fmt::format("{}; not as a definition: {}\n", head, error.what());
  }
}

}  // namespace fxfuser::frontend
