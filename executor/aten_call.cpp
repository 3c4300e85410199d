#include "executor/aten_call.h"

#include <ATen/core/jit_type.h>
#include <ATen/ops/scalar_tensor.h>

#include "executor/aten_bridge.h"
#include "executor/row_overload.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::executor {
namespace {

bool reads_values(const ir::Attr& attr) {
  if (attr.is_value()) return true;
  if (!attr.is_list()) return false;
  for (const ir::Attr& item : attr.list()) {
    if (reads_values(item)) return true;
  }
  return false;
}

c10::TypePtr without_optional(c10::TypePtr type) {
  while (type->kind() == c10::TypeKind::OptionalType) type = type->containedTypes().at(0);
  return type;
}

/// A number where a tensor is wanted: a 0-dim tensor that promotes as a number does.
c10::IValue wrapped_number(const c10::IValue& number) {
  at::Tensor tensor = at::scalar_tensor(number.toScalar(), at::TensorOptions().dtype(
      number.isDouble() ? c10::ScalarType::Double : number.isInt() ? c10::ScalarType::Long : number.isBool() ? c10::ScalarType::Bool : c10::ScalarType::ComplexDouble));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

c10::IValue plain(const ir::Attr& attr) {
  if (const auto* value = std::get_if<bool>(&attr.v)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&attr.v)) return *value;
  if (const auto* value = std::get_if<double>(&attr.v)) return *value;
  if (const auto* value = std::get_if<std::complex<double>>(&attr.v)) return c10::complex<double>(value->real(), value->imag());
  if (const auto* value = std::get_if<std::string>(&attr.v)) return *value;
  if (const auto* value = std::get_if<ir::DType>(&attr.v)) return static_cast<std::int64_t>(to_scalar_type(*value));
  if (const auto* value = std::get_if<ir::Device>(&attr.v)) return to_device(*value);
  if (const auto* value = std::get_if<ir::Layout>(&attr.v)) {
    FXF_CHECK(*value == ir::Layout::Strided, Runtime, "a layout other than strided");
    return static_cast<std::int64_t>(c10::Layout::Strided);
  }
  if (const auto* value = std::get_if<ir::MemoryFormat>(&attr.v)) {
    switch (*value) {
      case ir::MemoryFormat::Contiguous: return static_cast<std::int64_t>(c10::MemoryFormat::Contiguous);
      case ir::MemoryFormat::Preserve: return static_cast<std::int64_t>(c10::MemoryFormat::Preserve);
      case ir::MemoryFormat::ChannelsLast: return static_cast<std::int64_t>(c10::MemoryFormat::ChannelsLast);
      case ir::MemoryFormat::ChannelsLast3d: return static_cast<std::int64_t>(c10::MemoryFormat::ChannelsLast3d);
    }
  }
  if (const auto* value = std::get_if<ir::Opaque>(&attr.v)) return *std::static_pointer_cast<c10::IValue>(value->handle);
  return {};
}

c10::IValue number_as(const c10::IValue& value, c10::TypeKind kind) {
  if (kind == c10::TypeKind::FloatType && value.isInt()) return static_cast<double>(value.toInt());
  if (kind == c10::TypeKind::FloatType && value.isBool()) return value.toBool() ? 1.0 : 0.0;
  if (kind == c10::TypeKind::IntType && value.isBool()) return static_cast<std::int64_t>(value.toBool());
  if (kind == c10::TypeKind::BoolType && value.isInt()) return value.toInt() != 0;
  return value;
}

c10::IValue list_as(const ir::Attr& attr, const c10::TypePtr& element, const Slots& slots) {
  const c10::TypePtr inner = without_optional(element);
  const bool optional = element->kind() == c10::TypeKind::OptionalType;
  std::vector<c10::IValue> items;
  if (attr.is_list()) {
    for (const ir::Attr& item : attr.list()) items.push_back(to_ivalue(item, element, slots));
  } else {
    items.push_back(to_ivalue(attr, element, slots));  // int[1] from an int
  }
  if (inner->kind() == c10::TypeKind::TensorType && optional) {
    c10::List<std::optional<at::Tensor>> list;
    for (c10::IValue& item : items) list.push_back(item.isNone() ? std::optional<at::Tensor>() : std::optional<at::Tensor>(item.toTensor()));
    return list;
  }
  c10::impl::GenericList list(inner->kind() == c10::TypeKind::SymIntType ? c10::TypePtr(c10::IntType::get()) : element);
  for (c10::IValue& item : items) list.push_back(std::move(item));
  return list;
}

}  // namespace

c10::IValue to_ivalue(const ir::Attr& attr, const c10::TypePtr& type, const Slots& slots) {
  if (attr.is_none()) return {};
  const c10::TypePtr wanted = without_optional(type);
  if (wanted->kind() == c10::TypeKind::ListType) return list_as(attr, wanted->containedTypes().at(0), slots);
  // A row's list of dims where the fallback takes one dim.
  if (attr.is_list() && attr.list().size() == 1 && wanted->kind() == c10::TypeKind::IntType) return to_ivalue(attr.list()[0], type, slots);
  c10::IValue value = attr.is_value() ? slots.at(attr.value()) : plain(attr);
  if (wanted->kind() == c10::TypeKind::TensorType && (value.isScalar() || value.isBool())) return wrapped_number(value);
  return number_as(value, wanted->kind());
}

AtenCall::Argument AtenCall::make_argument(const ir::Attr& attr, const c10::Argument& schema) {
  Argument out;
  out.type = schema.type();
  out.has_holes = reads_values(attr);
  if (out.has_holes) out.holes = attr;
  else out.constant = to_ivalue(attr, schema.type(), {});
  return out;
}

std::optional<AtenCall> AtenCall::resolve_fallback(const ir::Node& node) {
  if (node.row == nullptr || node.form == nullptr) return std::nullopt;
  const auto overload = row_overload(*node.row, *node.form);
  if (!overload) return std::nullopt;
  AtenCall call(overload->op);
  call.name_ = overload->target;
  call.outputs_ = node.outputs;
  const auto& schema = overload->op.schema().arguments();
  for (std::size_t i = 0; i < schema.size(); ++i) {
    const ir::Attr& attr = overload->params[i].empty() ? ir::Attr() : ir::arg(node, overload->params[i]);
    if (attr.is_none() && schema[i].default_value()) {
      Argument argument;
      argument.constant = *schema[i].default_value();
      argument.type = schema[i].type();
      call.arguments_.push_back(std::move(argument));
      continue;
    }
    const bool several = attr.is_list() && attr.list().size() != 1;
    if (several && without_optional(schema[i].type())->kind() != c10::TypeKind::ListType) return std::nullopt;  // dims where it takes one
    call.arguments_.push_back(make_argument(attr, schema[i]));
  }
  return call;
}

AtenCall AtenCall::resolve(const ir::Graph&, const ir::Node& node) {
  if (auto fallback = resolve_fallback(node)) return std::move(*fallback);
  AtenCall call(find_operator(node.target));
  call.name_ = node.target;
  call.outputs_ = node.outputs;
  const auto& schema = call.handle_.schema().arguments();
  FXF_CHECK(node.args.size() == schema.size(), Runtime, "{} has {} arguments, {} were imported", node.target, schema.size(), node.args.size());
  for (std::size_t i = 0; i < schema.size(); ++i) call.arguments_.push_back(make_argument(node.args[i], schema[i]));
  return call;
}

void AtenCall::for_each_input(const std::function<void(ir::ValueId)>& fn) const {
  for (const Argument& argument : arguments_) {
    if (argument.has_holes) ir::for_each_value({argument.holes}, fn);
  }
}

std::string AtenCall::replay_problem() const {
  if (handle_.schema().is_mutable()) return "writes its argument";
  if (handle_.hasTag(at::Tag::nondeterministic_seeded)) return "draws random numbers";
  if (handle_.hasTag(at::Tag::data_dependent_output) || handle_.hasTag(at::Tag::dynamic_output_shape)) return "waits for the device";
  if (handle_.hasTag(at::Tag::cudagraph_unsafe)) return "may not be captured";
  return {};
}

void AtenCall::run(Slots& slots) const {
  torch::jit::Stack stack;
  stack.reserve(arguments_.size());
  for (const Argument& argument : arguments_) {
    stack.push_back(argument.has_holes ? to_ivalue(argument.holes, argument.type, slots) : argument.constant);
  }
  handle_.callBoxed(stack);
  std::size_t at = 0;
  const auto put = [&](c10::IValue&& value) {
    if (at < outputs_.size()) slots[outputs_[at++]] = std::move(value);
  };
  for (c10::IValue& result : stack) {
    if (result.isTensorList() || (result.isList() && outputs_.size() != stack.size())) {
      for (const c10::IValue& item : result.toListRef()) put(c10::IValue(item));
    } else {
      put(std::move(result));
    }
  }
}

}  // namespace fxfuser::executor
