#include "executor/table_ops.h"

#include <ATen/ops/div.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/var_mean.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>

#include <algorithm>
#include <mutex>

#include "executor/boxed_kernels.h"
#include "executor/random_ops.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

constexpr std::string_view kNamespace = "nvprims.";

/// Quotients as the prims have them: of integers cut towards zero, in their own dtype; booleans are no integers.
at::Tensor div(const at::Tensor& self, const at::Tensor& other) {
  const bool integers = c10::isIntegralType(at::result_type(self, other), /*includeBool=*/false);
  return integers ? at::div(self, other, "trunc") : at::div(self, other);
}

/// Dim i of `self` becomes dim `dims[i]` of the result; all others are broadcast.
at::Tensor broadcast_in_dim(const at::Tensor& self, c10::SymIntArrayRef shape, c10::IntArrayRef dims) {
  TORCH_CHECK(static_cast<std::int64_t>(dims.size()) == self.dim(), "broadcast_in_dim: ", dims.size(), " dims for a tensor of rank ", self.dim());
  TORCH_CHECK(shape.size() >= dims.size(), "broadcast_in_dim: a result of rank ", shape.size(), " for a tensor of rank ", self.dim());
  at::Tensor out = self;
  std::size_t next = 0;
  for (std::size_t at = 0; at < shape.size(); ++at) {
    if (next < dims.size() && dims[next] == static_cast<std::int64_t>(at)) ++next;
    else out = out.unsqueeze(static_cast<std::int64_t>(at));
  }
  TORCH_CHECK(next == dims.size(), "broadcast_in_dim: dims must rise strictly and lie below ", shape.size(), ", got ", dims);
  return out.expand_symint(shape);
}

/// The correction wins over the flag, the flag over the usual correction of 1.
std::tuple<at::Tensor, at::Tensor> var_mean(const at::Tensor& self, at::OptionalIntArrayRef dims, const std::optional<at::Scalar>& correction, std::optional<bool> keepdim,
                                            std::optional<bool> unbiased) {
  TORCH_CHECK(!correction || !unbiased, "var_mean: correction and unbiased can't both be given");
  std::optional<at::Scalar> chosen = correction;
  if (unbiased) chosen = at::Scalar(*unbiased ? 1 : 0);
  return at::var_mean(self, dims, chosen, keepdim.value_or(false));
}

/// In inference no statistics are saved: eager returns empty ones, its meta function does not know.
std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
                                                                 const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var, bool training,
                                                                 double momentum, double eps) {
  auto [out, mean, rstd] = at::native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
  if (training) return {out, mean, rstd};
  return {out, mean.new_empty({0}), rstd.new_empty({0})};
}

void define_helpers() {
  static auto* library = new torch::Library(torch::Library::FRAGMENT, "fxfuser", std::nullopt, __FILE__, __LINE__);  // never undone
  library->def("div(Tensor self, Tensor other) -> Tensor", &div);
  library->def("broadcast_in_dim(Tensor(a) self, SymInt[] shape, int[] dims) -> Tensor(a)", &broadcast_in_dim);
  library->impl("broadcast_in_dim", torch::dispatch(c10::DispatchKey::Functionalize, &broadcast_in_dim));
  library->def(
      "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps) "
      "-> (Tensor, Tensor, Tensor)",
      &native_batch_norm);
  define_random_ops(*library);
  library->def("var_mean(Tensor self, int[1]? dims=None, Scalar? correction=None, bool? keepdim=None, bool? unbiased=None) -> (Tensor, Tensor)", &var_mean);
}

/// "nvprims.view.shape" as the dispatcher spells it: "view.shape".
std::string dispatcher_name(const std::string& target) {
  std::string name = target.substr(kNamespace.size());
  if (name.ends_with(".default")) name.resize(name.size() - std::string_view(".default").size());
  return name;
}

c10::FunctionSchema parse_schema(const ir::OpRow& row, const ir::OpTarget& form) {
  try {
    return torch::jit::parseSchema("nvprims::" + dispatcher_name(form.target) + form.schema);
  } catch (const c10::Error& error) {
    throw_error(ErrorKind::Value, fmt::format("row '{}': the schema of {} is not one: {}", row.op, form.target, error.what_without_backtrace()));
  }
}

TableOp make_op(const ir::OpRow& row, const ir::OpTarget& form) {
  TableOp out{dispatcher_name(form.target), parse_schema(row, form), {at::Tag::pt2_compliant_tag}, {}};
  if (std::find(row.checks.begin(), row.checks.end(), "random_stream") != row.checks.end()) out.tags.push_back(at::Tag::nondeterministic_seeded);
  if (row.kind == ir::OpKind::Pointwise) out.tags.push_back(at::Tag::pointwise);
  out.kernels.emplace_back(c10::DispatchKey::CompositeExplicitAutograd, overload_kernel(row, form, out.schema));
  out.kernels.emplace_back(c10::DispatchKey::Autograd, autograd_kernel());
  // Functionalisation knows ATen's views only.
  const bool is_view = out.schema.hasAnyAliasInfo() && !out.schema.is_mutable();
  if (is_view) out.kernels.emplace_back(c10::DispatchKey::Functionalize, overload_kernel(row, form, out.schema));
  return out;
}

}  // namespace

std::vector<TableOp> make_table_ops(const ir::OpTable& table) {
  static std::once_flag helpers;
  std::call_once(helpers, define_helpers);
  std::vector<TableOp> out;
  for (const auto& row : table.rows()) {
    for (const ir::OpTarget& form : row->targets) {
      if (form.target.starts_with(kNamespace)) out.push_back(make_op(*row, form));
    }
  }
  return out;
}

void define_table_ops(std::vector<TableOp> ops) {
  static auto* library = new torch::Library(torch::Library::FRAGMENT, "nvprims", std::nullopt, __FILE__, __LINE__);  // never undone
  for (TableOp& op : ops) {
    if (c10::Dispatcher::singleton().findSchema(op.schema.operator_name()).has_value()) continue;
    library->def(std::move(op.schema), std::as_const(op.tags));
    for (auto& [key, kernel] : op.kernels) library->impl(op.name.c_str(), torch::dispatch(key, std::move(kernel)));
  }
}

}  // namespace fxfuser::executor
