#include "executor/frontend/overloads.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/runtime/operator.h>

namespace fxfuser::frontend {
namespace {

const c10::FunctionSchema* schema_of(const std::string& target) {
  const std::size_t first = target.find('.'), last = target.rfind('.');
  if (first == std::string::npos || last <= first) return nullptr;
  const std::string overload = target.substr(last + 1);
  const auto handle = c10::Dispatcher::singleton().findSchema({target.substr(0, first) + "::" + target.substr(first + 1, last - first - 1), overload == "default" ? "" : overload});
  return handle ? &handle->schema() : nullptr;
}

ir::Attr to_attr(const c10::IValue& value) {
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return value.toStringRef();
  if (!value.isList()) return {};
  ir::AttrList list;
  for (const c10::IValue& item : value.toListRef()) list.push_back(to_attr(item));
  return list;
}

/// A default that the closed variant holds.
std::optional<ir::Attr> fallback_of(const c10::Argument& argument) {
  if (!argument.default_value()) return std::nullopt;
  const c10::IValue& value = *argument.default_value();
  // The dispatcher keeps a memory format as a number; this is the only one that a schema has.
  if (argument.real_type()->kind() == c10::TypeKind::MemoryFormatType && value.toMemoryFormat() == c10::MemoryFormat::Contiguous) return ir::MemoryFormat::Contiguous;
  return to_attr(value);
}

ParamKind list_kind(const c10::Type& element) {
  switch (element.kind()) {
    case c10::TypeKind::TensorType: return ParamKind::Tensors;
    case c10::TypeKind::OptionalType: return ParamKind::Tensors;  // Tensor?[] is the only such list
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return ParamKind::Ints;
    case c10::TypeKind::FloatType: return ParamKind::Floats;
    default: return ParamKind::Other;
  }
}

ParamKind kind_of(const c10::Argument& argument) {
  c10::TypePtr type = argument.real_type();
  while (type->kind() == c10::TypeKind::OptionalType) type = type->containedTypes().at(0);
  switch (type->kind()) {
    case c10::TypeKind::TensorType: return ParamKind::Tensor;
    case c10::TypeKind::NumberType: return ParamKind::Number;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType: return ParamKind::Int;
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType: return ParamKind::Float;
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType: return ParamKind::Bool;
    case c10::TypeKind::StringType: return ParamKind::Text;
    case c10::TypeKind::ScalarTypeType: return ParamKind::DType;
    case c10::TypeKind::DeviceObjType: return ParamKind::Device;
    case c10::TypeKind::ListType: return list_kind(*type->containedTypes().at(0));
    default: return ParamKind::Other;
  }
}

/// Which argument a result shares memory with, -1 for none.
std::int32_t viewed_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
  if (result.alias_info() == nullptr) return -1;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* info = schema.arguments()[i].alias_info();
    if (info == nullptr) continue;
    for (const auto& symbol : result.alias_info()->beforeSets()) {
      if (info->beforeSets().count(symbol) > 0) return static_cast<std::int32_t>(i);
    }
  }
  return -1;
}

bool add_results(const c10::FunctionSchema& schema, OpOverload& out) {
  for (const c10::Argument& result : schema.returns()) {
    const c10::TypeKind kind = result.type()->kind();
    const bool number = kind == c10::TypeKind::NumberType || kind == c10::TypeKind::IntType || kind == c10::TypeKind::FloatType || kind == c10::TypeKind::BoolType ||
                        kind == c10::TypeKind::SymIntType;
    if (kind != c10::TypeKind::TensorType && !number) return false;
    out.outputs.push_back(number ? ir::ValueKind::Scalar : ir::ValueKind::Tensor);
    out.alias.views.push_back(viewed_argument(schema, result));
  }
  return !out.outputs.empty();
}

bool is_functional(const c10::FunctionSchema& schema) {
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) return false;
  }
  return true;
}

}  // namespace

std::optional<OpOverload> read_overload(const std::string& target, const ir::OpTarget* form) {
  const c10::FunctionSchema* schema = schema_of(target);
  if (schema == nullptr || !is_functional(*schema)) return std::nullopt;
  OpOverload out;
  out.target = target;
  if (form != nullptr) out.fixed = form->fixed;
  if (!add_results(*schema, out)) return std::nullopt;
  for (std::size_t i = 0; i < schema->arguments().size(); ++i) {
    const c10::Argument& argument = schema->arguments()[i];
    OverloadParam param;
    param.param = form == nullptr ? argument.name() : i < form->names.size() ? form->names[i] : "";
    param.kind = kind_of(argument);
    param.optional = argument.type()->kind() == c10::TypeKind::OptionalType;
    param.fallback = fallback_of(argument);
    out.params.push_back(std::move(param));
  }
  return out;
}

std::string aten_target(const std::string& name) {
  std::string found;
  for (const auto& op : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString("aten::" + name))) {
    const std::string& overload = op->schema().overload_name();
    const std::string target = "aten." + name + "." + (overload.empty() ? "default" : overload);
    if (overload.ends_with("names") || overload.ends_with("dimname") || overload.ends_with("Dimname") || !read_overload(target, nullptr)) continue;
    if (overload.empty()) return target;
    if (found.empty()) found = target;
  }
  return found;
}

std::vector<SignatureParam> schema_params(const std::string& target) {
  std::vector<SignatureParam> out;
  const c10::FunctionSchema* schema = schema_of(target);
  for (const c10::Argument& argument : schema->arguments()) {
    SignatureParam param;
    param.row = argument.name();
    param.name = param.row == "self" ? "arg" : param.row;
    param.fallback = fallback_of(argument);
    if (!param.fallback && argument.type()->kind() == c10::TypeKind::OptionalType) param.fallback = ir::Attr();
    out.push_back(std::move(param));
  }
  return out;
}

}  // namespace fxfuser::frontend
