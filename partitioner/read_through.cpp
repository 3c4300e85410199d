// A gather from what pointwise ops made: the ops are done again at the places that it reads, so that a row that is reduced in one
// kernel need not lie in memory for a second one to pick from (the loss of log-probabilities at their targets).

#include <algorithm>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::partitioner {
namespace {

constexpr int kDeepest = 12;  // ops that are done again

enum class Operand : std::uint8_t { Gathered, AsItIs, Unfit };

bool single(const ir::TensorMeta& meta) { return meta.sizes.size() == 0 || meta.numel() == 1; }

/// How an operand of an op over `whole` is read where `dim` is gathered: along with it, or as it is where it has one value along `dim`.
Operand operand_of(const ir::TensorMeta& operand, const Sizes& whole, std::size_t dim) {
  if (operand.sizes == whole) return Operand::Gathered;
  if (single(operand)) return Operand::AsItIs;
  return operand.sizes.size() == whole.size() && operand.sizes[dim] == 1 ? Operand::AsItIs : Operand::Unfit;
}

const ir::Node* producer(DecomposeBuilder& b, ValueId value) {
  const ir::NodeId id = b.graph().value(value).producer;
  return id == ir::kNoNode ? nullptr : &b.graph().nodes[id];
}

/// Whether everything that `value` is computed from by pointwise ops comes from outside the partition or is the same along `dim`.
bool fits(DecomposeBuilder& b, ValueId value, std::size_t dim, int& ops) {
  const ir::Node* node = producer(b, value);
  if (node == nullptr) return true;
  if ((node->row->kind != ir::OpKind::Pointwise && node->row->kind != ir::OpKind::Cast) || node->outputs.size() != 1 || ++ops > kDeepest) return false;
  const Sizes whole = b.meta(value).sizes;
  bool good = true, gathers = false;
  ir::for_each_value(node->args, [&](ValueId operand) {
    const Operand how = operand_of(b.meta(operand), whole, dim);
    gathers = gathers || how == Operand::Gathered;
    good = good && how != Operand::Unfit && (how == Operand::AsItIs || fits(b, operand, dim, ops));
  });
  return good && gathers;
}

ValueId read(DecomposeBuilder& b, ValueId value, const Attr& index, std::size_t dim) {
  const ir::Node* node = producer(b, value);
  if (node == nullptr) return b.call("index_read", {b.ref(value), index, static_cast<std::int64_t>(dim), "gather"});
  const Sizes whole = b.meta(value).sizes;
  const std::string op = node->row->op;
  std::vector<Attr> args = node->args;  // the graph grows below
  for (Attr& arg : args) {
    if (arg.is_value() && operand_of(b.meta(arg.value()), whole, dim) == Operand::Gathered) arg = b.ref(read(b, arg.value(), index, dim));
  }
  return b.call(op, std::move(args));
}

}  // namespace

ValueId DecomposeBuilder::gather(ValueId source, ValueId index, std::size_t dim) {
  const Sizes &whole = meta(source).sizes, &places = meta(index).sizes;
  bool along_dim = whole.size() == places.size() && dim < whole.size() && places[dim] <= whole[dim];
  for (std::size_t d = 0; along_dim && d < whole.size(); ++d) along_dim = d == dim || whole[d] == places[d];
  int ops = 0;
  if (along_dim && fits(*this, source, dim, ops)) return read(*this, source, ref(index), dim);
  return call("index_read", {ref(source), ref(index), static_cast<std::int64_t>(dim), "gather"});
}

}  // namespace fxfuser::partitioner
