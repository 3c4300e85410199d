#include "executor/frontend/signature.h"

#include <algorithm>

#include "executor/frontend/python_text.h"
#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

constexpr int kNo = -1;  // costs: 0 as it is, 1 with a number made a tensor, kNo not at all

bool is_tensor(const ir::Attr& attr, const FactsOf& facts) { return attr.is_value() && facts(attr.value()).kind == ir::ValueKind::Tensor; }
bool is_number(const ir::Attr& attr, const FactsOf& facts) {
  return attr.is_number() || (attr.is_value() && facts(attr.value()).kind == ir::ValueKind::Scalar);
}
bool is_integer(const ir::Attr& attr, const FactsOf& facts) {
  if (!attr.is_value()) return std::holds_alternative<std::int64_t>(attr.v);
  const Facts known = facts(attr.value());
  return known.kind == ir::ValueKind::Scalar && (!known.dtype || ir::is_integral(*known.dtype));
}

template <typename Holds>
bool all_items(const ir::Attr& attr, Holds holds) {
  return attr.is_list() && std::all_of(attr.list().begin(), attr.list().end(), holds);
}

int cost_of(const ir::Attr& attr, const OverloadParam& param, const FactsOf& facts) {
  const auto yes = [](bool holds) { return holds ? 0 : kNo; };
  if (attr.is_none()) return yes(param.optional || param.fallback.has_value());
  switch (param.kind) {
    case ParamKind::Tensor: return is_tensor(attr, facts) ? 0 : is_number(attr, facts) ? 1 : kNo;
    case ParamKind::Tensors: return yes(all_items(attr, [&](const ir::Attr& item) { return item.is_none() || is_tensor(item, facts); }));
    case ParamKind::Number:
    case ParamKind::Float: return yes(is_number(attr, facts));
    case ParamKind::Int: return yes(is_integer(attr, facts) || (attr.is_list() && attr.list().size() == 1 && is_integer(attr.list()[0], facts)));
    case ParamKind::Bool: return yes(std::holds_alternative<bool>(attr.v));
    case ParamKind::Ints: return yes(is_integer(attr, facts) || all_items(attr, [&](const ir::Attr& item) { return is_integer(item, facts); }));
    case ParamKind::Floats: return yes(all_items(attr, [&](const ir::Attr& item) { return is_number(item, facts); }));
    case ParamKind::DType: return yes(std::holds_alternative<ir::DType>(attr.v));
    case ParamKind::Device: return yes(std::holds_alternative<ir::Device>(attr.v));
    case ParamKind::Text: return yes(std::holds_alternative<std::string>(attr.v));
    case ParamKind::Other: return yes(!is_tensor(attr, facts));
  }
  return kNo;
}

int cost_of(const OpSignature& op, const OpOverload& overload, const std::vector<ir::Attr>& args, const FactsOf& facts) {
  int total = 0;
  for (std::size_t i = 0; i < op.params.size(); ++i) {
    if (op.params[i].row == "_") continue;  // taken for the sake of callers, means nothing
    const auto param = std::find_if(overload.params.begin(), overload.params.end(), [&](const OverloadParam& item) { return item.param == op.params[i].row; });
    if (param == overload.params.end()) {
      // Not among its arguments: what it fixes, or what was not given, must be meant.
      const auto fixed = overload.fixed.find(op.params[i].row);
      const std::optional<ir::Attr> implied = fixed != overload.fixed.end() ? fixed->second : op.params[i].fallback;
      if (!args[i].is_none() && !(implied && is_same(*implied, args[i]))) return kNo;
      continue;
    }
    const int cost = cost_of(args[i], *param, facts);
    if (cost == kNo) return kNo;
    total += cost;
  }
  return total;
}

std::size_t position_of(const OpSignature& op, const std::string& keyword) {
  for (std::size_t i = 0; i < op.params.size(); ++i) {
    if (op.params[i].name == keyword || op.params[i].alias == keyword) return i;
  }
  throw_error(ErrorKind::Type, fmt::format("{} has no argument '{}'", op.text(), keyword));
}

}  // namespace

std::string OpSignature::text() const {
  std::string list;
  for (const SignatureParam& param : params) {
    list += (list.empty() ? "" : ", ") + param.name;
    if (param.fallback) list += "=" + python_text(*param.fallback);
  }
  return fmt::format("fd.ops.{}({})", name, list);
}

std::vector<ir::Attr> bind_arguments(const OpSignature& op, std::vector<ir::Attr> positional, std::map<std::string, ir::Attr> keywords) {
  FXF_CHECK(positional.size() <= op.params.size(), Type, "{} takes at most {} arguments, {} were given", op.text(), op.params.size(), positional.size());
  std::vector<std::optional<ir::Attr>> given(op.params.size());
  for (std::size_t i = 0; i < positional.size(); ++i) given[i] = std::move(positional[i]);
  for (auto& [keyword, value] : keywords) {
    const std::size_t at = position_of(op, keyword);
    FXF_CHECK(!given[at], Type, "{}: '{}' is given twice", op.text(), keyword);
    given[at] = std::move(value);
  }
  std::vector<ir::Attr> out;
  for (std::size_t i = 0; i < op.params.size(); ++i) {
    FXF_CHECK(given[i] || op.params[i].fallback, Type, "{} lacks its argument '{}'", op.text(), op.params[i].name);
    out.push_back(given[i] ? std::move(*given[i]) : *op.params[i].fallback);
  }
  return out;
}

const OpOverload* choose_overload(const OpSignature& op, const std::vector<ir::Attr>& args, const FactsOf& facts) {
  const OpOverload* best = nullptr;
  int least = 0;
  for (const OpOverload& overload : op.overloads) {
    const int cost = cost_of(op, overload, args, facts);
    if (cost == kNo || (best != nullptr && cost >= least)) continue;
    best = &overload;
    least = cost;
  }
  return best;
}

std::vector<ir::Attr> overload_arguments(const OpSignature& op, const OpOverload& overload, const std::vector<ir::Attr>& args) {
  std::vector<ir::Attr> out;
  for (const OverloadParam& param : overload.params) {
    const auto at = std::find_if(op.params.begin(), op.params.end(), [&](const SignatureParam& item) { return !param.param.empty() && item.row == param.param; });
    ir::Attr value = at == op.params.end() ? ir::Attr() : args[static_cast<std::size_t>(at - op.params.begin())];
    if (value.is_none() && param.fallback && !(at != op.params.end() && param.optional)) value = *param.fallback;
    if (at == op.params.end() && value.is_none() && param.kind == ParamKind::Bool && !param.optional) value = false;  // a hint that the row has no use for
    out.push_back(std::move(value));
  }
  return out;
}

bool is_scalar_call(const std::vector<ir::Attr>& args, const FactsOf& facts) {
  bool scalars = false, tensors = false;
  ir::for_each_value(args, [&](ir::ValueId id) {
    scalars = scalars || facts(id).kind == ir::ValueKind::Scalar;
    tensors = tensors || facts(id).kind == ir::ValueKind::Tensor;
  });
  return scalars && !tensors;
}

}  // namespace fxfuser::frontend
