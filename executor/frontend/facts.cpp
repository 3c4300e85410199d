// Rank and dtype of results before anything runs: by the row where it says so, else by the rule that the op is listed with.

#include <algorithm>

#include "executor/frontend/signature.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/infer.h"

namespace fxfuser::frontend {
namespace {

bool is_short(ir::DType dtype) { return dtype == ir::DType::Float16 || dtype == ir::DType::BFloat16; }

/// Tensors among the arguments, lists included.
std::vector<Facts> tensors_of(const std::vector<ir::Attr>& args, const FactsOf& facts) {
  std::vector<Facts> out;
  ir::for_each_value(args, [&](ir::ValueId id) {
    const Facts known = facts(id);
    if (known.kind == ir::ValueKind::Tensor) out.push_back(known);
  });
  return out;
}

const ir::Attr& argument(const OpSignature& op, const std::vector<ir::Attr>& args, std::string_view row) {
  static const ir::Attr none;
  for (std::size_t i = 0; i < op.params.size(); ++i) {
    if (op.params[i].row == row) return args[i];
  }
  return none;
}

/// The row's own inference on tensors of the known ranks whose sizes are all 1.
std::optional<Facts> inferred(const OpSignature& op, const std::vector<ir::Attr>& args, const FactsOf& facts) {
  ir::Graph graph;
  ir::Node node;
  node.row = op.infer_as;
  node.name = op.name;
  bool known = true;
  for (const std::string& param : op.infer_as->params) {
    ir::Attr attr = argument(op, args, param);
    if (attr.is_none()) {
      if (const auto fallback = op.infer_as->defaults.find(param); fallback != op.infer_as->defaults.end()) attr = fallback->second;
    }
    if (attr.is_value()) {
      const Facts value = facts(attr.value());
      std::optional<ir::TensorMeta> meta;
      if (value.kind == ir::ValueKind::Tensor) {
        known = known && value.rank && value.dtype;
        if (!known) return std::nullopt;
        const ir::DType dtype = op.widens && is_short(*value.dtype) ? ir::DType::Float32 : *value.dtype;
        meta = ir::contiguous(dtype, {}, ir::Sizes(static_cast<std::size_t>(*value.rank), 1));
      } else {
        meta = ir::contiguous(value.dtype.value_or(ir::DType::Float64), {}, {});
      }
      attr = ir::ValueRef{graph.add_input(param, meta, value.kind)};
    }
    node.args.push_back(std::move(attr));
  }
  try {
    const ir::Inferred result = ir::infer(graph, node);
    return Facts{ir::ValueKind::Tensor, result.outputs.at(0).rank(), result.outputs.at(0).dtype};
  } catch (const Error&) {
    return std::nullopt;  // a dim out of range, say: told when the graph is run, with the real shapes
  }
}

std::optional<std::int64_t> rank_of(const OpSignature& op, std::size_t at, const std::vector<ir::Attr>& args, const std::vector<Facts>& tensors) {
  const auto first = tensors.empty() ? std::optional<std::int64_t>() : tensors[0].rank;
  switch (op.rank) {
    case RankRule::Same: return first;
    case RankRule::Broadcast: {
      std::int64_t rank = 0;
      for (const Facts& tensor : tensors) {
        if (!tensor.rank) return std::nullopt;
        rank = std::max(rank, *tensor.rank);
      }
      return rank;
    }
    case RankRule::Reduce: {
      if (!first) return std::nullopt;
      const ir::Attr& keep = argument(op, args, "keepdim");
      if (!keep.is_none() && keep.as_bool()) return first;
      const ir::Attr& dims = argument(op, args, "dims");
      const auto count = dims.is_list() ? static_cast<std::int64_t>(dims.list().size()) : std::int64_t{1};
      return dims.is_none() || count == 0 ? 0 : std::max<std::int64_t>(0, *first - count);
    }
    case RankRule::Length: {
      for (std::size_t i = 0; i < op.params.size(); ++i) {
        if (op.params[i].name == op.length_of && args[i].is_list()) return static_cast<std::int64_t>(args[i].list().size());
      }
      return std::nullopt;
    }
    case RankRule::Less: return first ? std::optional<std::int64_t>(*first - 1) : std::nullopt;
    case RankRule::Norm: return at == 0 ? first : std::optional<std::int64_t>(1);
    case RankRule::Unknown:
    case RankRule::Infer:
    case RankRule::Sizes: break;
  }
  return std::nullopt;
}

std::optional<ir::DType> dtype_of(const OpSignature& op, std::size_t at, const std::vector<ir::Attr>& args, const std::vector<Facts>& tensors) {
  const auto first = tensors.empty() ? std::optional<ir::DType>() : tensors[0].dtype;
  if (op.dtypes.empty()) return std::nullopt;
  switch (op.dtypes[std::min(at, op.dtypes.size() - 1)]) {
    case DTypeRule::Same: return first;
    case DTypeRule::Int: return ir::DType::Int64;
    case DTypeRule::Bool: return ir::DType::Bool;
    case DTypeRule::Param: {
      const auto* dtype = std::get_if<ir::DType>(&argument(op, args, "dtype").v);
      return dtype != nullptr ? *dtype : first;
    }
    case DTypeRule::Unknown: break;
  }
  return std::nullopt;
}

/// Numbers: comparisons give Bool, a quotient Double, the rest the wider of the two.
Facts scalar_facts(const OpSignature& op, const std::vector<ir::Attr>& args, const FactsOf& facts) {
  std::optional<ir::DType> dtype;
  for (const ir::Attr& attr : args) {
    if (const auto* wanted = std::get_if<ir::DType>(&attr.v)) return {ir::ValueKind::Scalar, 0, *wanted};
  }
  const auto take = [&](ir::DType other) { dtype = dtype ? ir::promote(*dtype, other) : other; };
  for (const ir::Attr& attr : args) {
    if (attr.is_value()) take(facts(attr.value()).dtype.value_or(ir::DType::Float64));
    else if (std::holds_alternative<std::int64_t>(attr.v)) take(ir::DType::Int64);
    else if (std::holds_alternative<double>(attr.v)) take(ir::DType::Float64);
  }
  if (op.row != nullptr && op.row->result == ir::ResultRule::AlwaysBool) dtype = ir::DType::Bool;
  if (op.row != nullptr && op.row->result == ir::ResultRule::IntToFloat && dtype && !ir::is_complex(*dtype)) dtype = ir::DType::Float64;
  return {ir::ValueKind::Scalar, 0, dtype};
}

}  // namespace

std::vector<Facts> result_facts(const OpSignature& op, const std::vector<ir::Attr>& args, const FactsOf& facts) {
  if (!op.scalar.empty() && is_scalar_call(args, facts)) return {scalar_facts(op, args, facts)};
  std::vector<Facts> out(op.composite_outputs);
  if (op.composite == nullptr) {
    const OpOverload* overload = choose_overload(op, args, facts);
    if (overload == nullptr) return {};
    out.assign(overload->outputs.size(), Facts{});
    for (std::size_t i = 0; i < out.size(); ++i) out[i].kind = overload->outputs[i];
  }
  if (op.rank == RankRule::Infer && op.infer_as != nullptr) {
    if (const auto known = inferred(op, args, facts)) {
      out[0] = *known;
      if (out.size() == 2) out[1].rank = known->rank, out[1].dtype = ir::DType::Int64;  // values and indices
    }
    return out;
  }
  const std::vector<Facts> tensors = tensors_of(args, facts);
  if (op.rank == RankRule::Sizes) {
    const bool one = !op.returns_list;
    FXF_CHECK(one || (!tensors.empty() && tensors[0].rank), Runtime, "fd.ops.{} needs a tensor whose rank is known before it runs", op.name);
    out.assign(one ? 1 : static_cast<std::size_t>(*tensors[0].rank), {ir::ValueKind::Scalar, 0, ir::DType::Int64});
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    Facts& result = out[i];
    if (result.kind != ir::ValueKind::Tensor) continue;
    result.rank = rank_of(op, i, args, tensors);
    result.dtype = dtype_of(op, i, args, tensors);
    if (op.widens && result.dtype && is_short(*result.dtype)) result.dtype = ir::DType::Float32;
  }
  return out;
}

}  // namespace fxfuser::frontend
