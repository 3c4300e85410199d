#include "bindings/attr_convert.h"

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

ir::DType to_dtype(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Bool: return ir::DType::Bool;
    case c10::ScalarType::Byte: return ir::DType::UInt8;
    case c10::ScalarType::Char: return ir::DType::Int8;
    case c10::ScalarType::Short: return ir::DType::Int16;
    case c10::ScalarType::Int: return ir::DType::Int32;
    case c10::ScalarType::Long: return ir::DType::Int64;
    case c10::ScalarType::Half: return ir::DType::Float16;
    case c10::ScalarType::BFloat16: return ir::DType::BFloat16;
    case c10::ScalarType::Float: return ir::DType::Float32;
    case c10::ScalarType::Double: return ir::DType::Float64;
    case c10::ScalarType::ComplexFloat: return ir::DType::Complex64;
    case c10::ScalarType::ComplexDouble: return ir::DType::Complex128;
    case c10::ScalarType::Float8_e4m3fn: return ir::DType::Float8E4M3;
    case c10::ScalarType::Float8_e5m2: return ir::DType::Float8E5M2;
    default: return ir::DType::Other;
  }
}

ir::Attr to_memory_format(c10::MemoryFormat format) {
  switch (format) {
    case c10::MemoryFormat::Contiguous: return ir::MemoryFormat::Contiguous;
    case c10::MemoryFormat::Preserve: return ir::MemoryFormat::Preserve;
    case c10::MemoryFormat::ChannelsLast: return ir::MemoryFormat::ChannelsLast;
    default: return ir::MemoryFormat::ChannelsLast3d;
  }
}

ir::Attr opaque(py::handle object, const c10::TypePtr& expected) {
  const c10::TypePtr type = expected != nullptr ? expected : c10::TypePtr(c10::PyObjectType::get());
  auto held = std::make_shared<c10::IValue>(torch::jit::toIValue(object, type));
  return ir::Opaque{held, py::str(py::type::of(object).attr("__name__"))};
}

ir::Attr list_attr(PyObject* sequence, const NodeMap& nodes, const c10::TypePtr& expected) {
  c10::TypePtr element;
  if (expected != nullptr && expected->containedTypeSize() > 0) element = expected->containedTypes()[0];
  ir::AttrList list;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence);
  list.reserve(static_cast<std::size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) list.push_back(to_attr(PySequence_Fast_GET_ITEM(sequence, i), nodes, element));
  return list;
}

/// A size as an integer: a symbolic one by its hint; none where only the data will tell.
std::optional<std::int64_t> int_of(const c10::SymInt& size) {
  if (auto concrete = size.maybe_as_int()) return *concrete;
  const py::object hint = py::cast(size).attr("node").attr("hint");
  if (hint.is_none()) return std::nullopt;
  return py::cast<std::int64_t>(hint);
}

bool append_sizes(c10::SymIntArrayRef from, ir::Sizes& to) {
  for (const c10::SymInt& size : from) {
    const auto value = int_of(size);
    if (!value) return false;
    to.push_back(*value);
  }
  return true;
}

}  // namespace

ir::Attr to_attr(py::handle object, const NodeMap& nodes, const c10::TypePtr& expected) {
  PyObject* raw = object.ptr();
  if (raw == Py_None) return {};
  if (auto found = nodes.find(raw); found != nodes.end()) {
    if (!found->second.several) return ir::ValueRef{found->second.ids.at(0)};
    ir::AttrList list;
    for (ir::ValueId id : found->second.ids) list.emplace_back(ir::ValueRef{id});
    return list;
  }
  if (PyBool_Check(raw)) return raw == Py_True;
  if (PyLong_Check(raw)) return static_cast<std::int64_t>(py::cast<long long>(object));
  if (PyFloat_Check(raw)) return PyFloat_AS_DOUBLE(raw);
  if (PyComplex_Check(raw)) return std::complex<double>(PyComplex_RealAsDouble(raw), PyComplex_ImagAsDouble(raw));
  if (PyUnicode_Check(raw)) return py::cast<std::string>(object);
  if (PyTuple_Check(raw) || PyList_Check(raw)) return list_attr(raw, nodes, expected);
  if (THPDtype_Check(raw)) {
    const c10::ScalarType type = reinterpret_cast<THPDtype*>(raw)->scalar_type;
    const ir::DType dtype = to_dtype(type);
    if (dtype != ir::DType::Other) return dtype;
    return ir::Opaque{std::make_shared<c10::IValue>(static_cast<std::int64_t>(type)), c10::toString(type)};
  }
  if (THPDevice_Check(raw)) return to_device(reinterpret_cast<THPDevice*>(raw)->device);
  if (THPLayout_Check(raw)) {
    const bool strided = reinterpret_cast<THPLayout*>(raw)->layout == c10::Layout::Strided;
    return strided ? ir::Layout::Strided : ir::Layout::Other;
  }
  if (THPMemoryFormat_Check(raw)) return to_memory_format(reinterpret_cast<THPMemoryFormat*>(raw)->memory_format);
  return opaque(object, expected);
}

namespace {
ir::Attr to_attr(const c10::IValue& value) {
  if (value.isNone()) return {};
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isComplexDouble()) {
    const auto number = value.toComplexDouble();
    return std::complex<double>(number.real(), number.imag());
  }
  if (value.isString()) return value.toStringRef();
  if (value.isList()) {
    ir::AttrList list;
    for (const c10::IValue& item : value.toListRef()) list.push_back(to_attr(item));
    return list;
  }
  return ir::Opaque{std::make_shared<c10::IValue>(value), value.tagKind()};
}
}  // namespace

ir::Attr default_of(const c10::Argument& argument) {
  if (!argument.default_value()) return {};
  const c10::IValue& value = *argument.default_value();
  // The dispatcher keeps a memory format as a number.
  return argument.real_type()->kind() == c10::TypeKind::MemoryFormatType ? to_memory_format(value.toMemoryFormat()) : to_attr(value);
}

ir::Device to_device(const c10::Device& device) {
  ir::Device out;
  out.kind = device.is_cpu()    ? ir::DeviceKind::Cpu
             : device.is_cuda() ? ir::DeviceKind::Cuda
             : device.is_meta() ? ir::DeviceKind::Meta
                                : ir::DeviceKind::Other;
  out.index = out.kind == ir::DeviceKind::Cpu ? std::int16_t{-1} : static_cast<std::int16_t>(device.index());
  return out;
}

std::optional<ir::TensorMeta> meta_of(py::handle tensor) {
  if (!THPVariable_Check(tensor.ptr())) return std::nullopt;
  const at::Tensor& value = THPVariable_Unpack(tensor.ptr());
  if (value.layout() != c10::Layout::Strided) return std::nullopt;
  ir::TensorMeta meta;
  meta.dtype = to_dtype(value.scalar_type());
  meta.device = to_device(value.device());
  if (!append_sizes(value.sym_sizes(), meta.sizes) || !append_sizes(value.sym_strides(), meta.strides)) return std::nullopt;
  return meta;
}

}  // namespace fxfuser::bindings
