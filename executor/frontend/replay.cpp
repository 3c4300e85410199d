#include "executor/frontend/replay.h"

#include <algorithm>

#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

bool holds_tensor(const std::vector<ir::Attr>& args, const FactsOf& facts) {
  bool found = false;
  ir::for_each_value(args, [&](ir::ValueId id) { found = found || facts(id).kind == ir::ValueKind::Tensor; });
  return found;
}

}  // namespace

Replayer::Replayer(const OpSource& ops, const ir::Device& device, std::string name) : ops_(ops), device_(device) { out_.graph.name = std::move(name); }

FactsOf Replayer::facts() const {
  return [this](ir::ValueId id) { return facts_[id]; };
}

void Replayer::tensor(const TensorRecord& record) {
  values_.emplace_back(ir::ValueRef{out_.graph.add_input(fmt::format("T{}", values_.size()), std::nullopt)});
  facts_.push_back(facts_of(record).at(0));
}

void Replayer::scalar() {
  values_.emplace_back(ir::ValueRef{out_.graph.add_input(fmt::format("S{}", values_.size()), std::nullopt, ir::ValueKind::Scalar)});
  facts_.push_back({ir::ValueKind::Scalar, 0, std::nullopt});
}

void Replayer::constant(const ir::Attr& value) { values_.push_back(value); }

void Replayer::op(const OpRecord& record) {
  const OpSignature* op = ops_.find(record.op);
  FXF_CHECK(op != nullptr, Value, "fd.ops has no '{}'", record.op);
  std::vector<ir::Attr> args;
  for (const ir::Attr& attr : record.args) args.push_back(translated(attr));
  const bool on_numbers = !op->scalar.empty() && record.outputs.size() == 1 && record.outputs[0].kind == ir::ValueKind::Scalar;
  if (on_numbers) {
    args.resize(op->scalar_arity);
    values_.push_back(host(op->scalar, std::move(args)));
    return;
  }
  if (op->widens) {
    for (ir::Attr& attr : args) attr = widened(attr);
  }
  std::vector<ir::Attr> results = op->composite != nullptr ? op->composite(*this, args) : emit(*op, args);
  FXF_ASSERT(results.size() == record.outputs.size(), "{} gave {} results, {} were defined", record.op, results.size(), record.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].is_value()) facts_[results[i].value()] = record.outputs[i];
    values_.push_back(std::move(results[i]));
  }
}

void Replayer::output(const OutputRecord& record) {
  ir::Attr value = values_.at(record.value);
  if (!record.stride_order.empty()) value = with_stride_order(*this, value, record.stride_order);
  if (record.alias == ir::kNoValue) out_.graph.outputs.push_back(value);
  else out_.graph.write_backs.push_back({values_.at(record.alias).value(), value.value()});
}

std::vector<ir::Attr> Replayer::calls(std::string_view row, const Named& args) {
  const OpSignature& op = ops_.row(row);
  std::vector<ir::Attr> given;
  std::size_t used = 0;
  for (const SignatureParam& param : op.params) {
    const auto found = args.find(param.row);
    used += found != args.end() ? 1 : 0;
    given.push_back(found != args.end() ? found->second : param.fallback.value_or(ir::Attr()));
  }
  FXF_ASSERT(used == args.size(), "{} was given an argument that it has not", op.text());
  return emit(op, given);
}

std::vector<ir::Attr> Replayer::emit(const OpSignature& op, const std::vector<ir::Attr>& args) {
  const OpOverload* overload = choose_overload(op, args, facts());
  FXF_CHECK(overload != nullptr, Type, "no overload of {} takes its arguments", op.text());
  ir::Node node;
  node.target = overload->target;
  node.args = overload_arguments(op, *overload, args);
  if (!holds_tensor(node.args, facts())) {
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (overload->params[i].kind == ParamKind::Device && node.args[i].is_none()) node.args[i] = device_;
    }
  }
  const std::size_t first = overload->target.find('.') + 1;
  node.name = fmt::format("{}_{}", overload->target.substr(first, overload->target.find('.', first) - first), out_.graph.nodes.size());
  const std::vector<Facts> known = result_facts(op, args, facts());
  const ir::ValueId at = add(std::move(node), overload->outputs, overload->alias);
  std::vector<ir::Attr> results;
  for (std::size_t i = 0; i < overload->outputs.size(); ++i) {
    results.emplace_back(ir::ValueRef{static_cast<ir::ValueId>(at + i)});
    if (i < known.size()) facts_[at + i] = known[i];
  }
  return results;
}

ir::ValueId Replayer::add(ir::Node node, const std::vector<ir::ValueKind>& outputs, partitioner::AliasInfo alias) {
  node.origin = static_cast<std::uint32_t>(out_.graph.nodes.size());
  const auto at = static_cast<ir::ValueId>(out_.graph.values.size());
  out_.graph.add_node(std::move(node), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    out_.graph.values[at + i].kind = outputs[i];
    facts_.push_back({outputs[i], std::nullopt, std::nullopt});
  }
  out_.alias.push_back(std::move(alias));
  return at;
}

ir::Attr Replayer::host(std::string target, std::vector<ir::Attr> args) {
  ir::Node node;
  node.kind = ir::NodeKind::Scalar;
  node.name = fmt::format("number_{}", out_.graph.nodes.size());
  node.target = std::move(target);
  node.args = std::move(args);
  return ir::ValueRef{add(std::move(node), {ir::ValueKind::Scalar}, {})};
}

ir::Attr Replayer::size(const ir::Attr& tensor, std::int64_t dim) {
  ir::Node node;
  node.name = fmt::format("size_{}", out_.graph.nodes.size());
  node.target = "aten.sym_size.int";
  node.args = {tensor, dim};
  const ir::ValueId id = add(std::move(node), {ir::ValueKind::Scalar}, {{}, {-1}});
  facts_[id].dtype = ir::DType::Int64;
  return ir::ValueRef{id};
}

std::int64_t Replayer::rank(const ir::Attr& tensor, std::string_view op) const {
  FXF_CHECK(tensor.is_value() && facts_[tensor.value()].rank, Runtime, "fd.ops.{} needs a tensor whose rank is known before it runs", op);
  return *facts_[tensor.value()].rank;
}

ir::Attr Replayer::translated(const ir::Attr& attr) const {
  if (attr.is_value()) return values_.at(attr.value());
  if (!attr.is_list()) return attr;
  ir::AttrList out;
  for (const ir::Attr& item : attr.list()) out.push_back(translated(item));
  return out;
}

ir::Attr Replayer::widened(const ir::Attr& attr) {
  if (!attr.is_value()) return attr;
  const Facts known = facts_[attr.value()];
  if (known.kind != ir::ValueKind::Tensor || (known.dtype != ir::DType::Float16 && known.dtype != ir::DType::BFloat16)) return attr;
  if (const auto found = wide_.find(attr.value()); found != wide_.end()) return ir::ValueRef{found->second};
  const ir::Attr wide = call("to_copy", {{"self", attr}, {"dtype", ir::DType::Float32}});
  facts_[wide.value()] = {ir::ValueKind::Tensor, known.rank, ir::DType::Float32};
  wide_[attr.value()] = wide.value();
  return wide;
}

Replayed replay(const std::vector<Record>& records, const OpSource& ops, const ir::Device& device, std::string name) {
  Replayer replayer(ops, device, std::move(name));
  for (const Record& record : records) {
    std::visit([&](const auto& functor) { functor(replayer); }, record);
  }
  return replayer.take();
}

}  // namespace fxfuser::frontend
