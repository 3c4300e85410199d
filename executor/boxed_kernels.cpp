#include "executor/boxed_kernels.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>

#include "executor/aten_call.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

/// Where one argument of the overload comes from: the caller's argument `from`, or a constant.
struct Source {
  std::ptrdiff_t from = -1;
  c10::IValue constant;  // also what a None from the caller means
};

Source source_of(const std::string& param, const ir::OpRow& row, const ir::OpTarget& form, const c10::Argument& wanted) {
  Source out;
  if (wanted.default_value()) out.constant = *wanted.default_value();
  if (param.empty()) return out;
  const auto at = std::find(form.names.begin(), form.names.end(), param);
  if (at != form.names.end()) {
    out.from = at - form.names.begin();
    return out;
  }
  const auto fixed = form.fixed.find(param);
  const auto usual = row.defaults.find(param);
  const ir::Attr value = fixed != form.fixed.end() ? fixed->second : usual != row.defaults.end() ? usual->second : ir::Attr();
  if (!value.is_none()) out.constant = to_ivalue(value, wanted.type(), {});
  return out;
}

/// None, False and the strided layout: what an argument holds that nobody gave.
bool is_unset(const c10::IValue& value, const c10::Argument& argument) {
  if (value.isNone()) return true;
  if (value.isBool()) return !value.toBool();
  return argument.real_type()->str().find("Layout") != std::string::npos && value.isInt() && value.toInt() == static_cast<std::int64_t>(c10::Layout::Strided);
}

class OverloadKernel final : public c10::OperatorKernel {
 public:
  OverloadKernel(const RowOverload& overload, const ir::OpRow& row, const ir::OpTarget& form) : op_(overload.op), name_(form.target), must_default_(form.must_default_at) {
    const auto& arguments = op_.schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) sources_.push_back(source_of(overload.params[i], row, form, arguments[i]));
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const auto& schema = op.schema().arguments();
    const auto given = torch::jit::last(*stack, schema.size());
    for (const std::size_t at : must_default_) {
      TORCH_CHECK(is_unset(given[at], schema[at]), name_, " takes ", schema[at].name(), " at its default only");
    }
    torch::jit::Stack inner;
    inner.reserve(sources_.size());
    for (const Source& source : sources_) {
      const bool use = source.from >= 0 && !given[static_cast<std::size_t>(source.from)].isNone();
      inner.push_back(use ? given[static_cast<std::size_t>(source.from)] : source.constant);
    }
    torch::jit::drop(*stack, schema.size());
    op_.callBoxed(inner);
    stack->insert(stack->end(), std::make_move_iterator(inner.begin()), std::make_move_iterator(inner.end()));
  }

 private:
  c10::OperatorHandle op_;
  std::string name_;
  std::vector<std::size_t> must_default_;
  std::vector<Source> sources_;
};

struct NoBackward final : torch::autograd::Node {
  NoBackward(std::string prim, torch::autograd::edge_list edges) : Node(std::move(edges)), prim_(std::move(prim)) {}
  torch::autograd::variable_list apply(torch::autograd::variable_list&&) override { TORCH_CHECK(false, "backwards not supported on prim ", prim_); }
  std::string name() const override { return "BackwardsNotSupported"; }

 private:
  std::string prim_;
};

torch::autograd::variable_list tensors_in(c10::ArrayRef<c10::IValue> values) {
  torch::autograd::variable_list out;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) out.push_back(value.toTensor());
    else if (value.isTensorList()) for (const at::Tensor& tensor : value.toTensorVector()) out.push_back(tensor);
  }
  return out;
}

class AutogradKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    std::shared_ptr<NoBackward> node;
    if (c10::GradMode::is_enabled()) {
      const auto inputs = tensors_in(torch::jit::last(*stack, op.schema().arguments().size()));
      if (torch::autograd::any_variable_requires_grad(inputs)) {
        node = std::make_shared<NoBackward>(c10::toString(op.operator_name()), torch::autograd::collect_next_edges(inputs));
      }
    }
    {
      const at::AutoDispatchBelowAutograd below;
      op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
    }
    if (node == nullptr) return;
    for (const at::Tensor& tensor : tensors_in(torch::jit::last(*stack, op.schema().returns().size()))) {
      if (tensor.defined() && torch::autograd::isDifferentiableType(tensor.scalar_type())) torch::autograd::set_history(tensor, node);
    }
  }
};

}  // namespace

torch::CppFunction overload_kernel(const ir::OpRow& row, const ir::OpTarget& form, const c10::FunctionSchema& schema) {
  const auto overload = row_overload(row, form);
  FXF_CHECK(overload.has_value(), Value, "row '{}': no ATen overload takes what {} gives; name one as its fallback", row.op, form.target);
  FXF_CHECK(schema.arguments().size() == form.names.size(), Value, "row '{}': {} names {} arguments, its schema has {}", row.op, form.target,
            form.names.size(), schema.arguments().size());
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<OverloadKernel>(*overload, row, form));
}

torch::CppFunction autograd_kernel() { return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<AutogradKernel>()); }

}  // namespace fxfuser::executor
