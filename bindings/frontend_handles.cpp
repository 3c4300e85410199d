#include "bindings/frontend_handles.h"

#include "bindings/attr_convert.h"
#include "executor/frontend/python_text.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

using frontend::Argument;
using frontend::Handle;

/// Python's operators and the op that each is.
struct Operator {
  const char* name;
  const char* op;
  bool reflected;
};
constexpr Operator kBinary[] = {
    {"__add__", "add", false},       {"__radd__", "add", true},      {"__sub__", "sub", false},     {"__rsub__", "sub", true},      {"__mul__", "mul", false},
    {"__rmul__", "mul", true},       {"__truediv__", "truediv", false}, {"__rtruediv__", "truediv", true}, {"__floordiv__", "floor_divide", false},
    {"__rfloordiv__", "floor_divide", true}, {"__mod__", "remainder", false}, {"__rmod__", "remainder", true}, {"__pow__", "pow", false},
    {"__rpow__", "pow", true},       {"__and__", "bitwise_and", false}, {"__rand__", "bitwise_and", true}, {"__or__", "bitwise_or", false},
    {"__ror__", "bitwise_or", true}, {"__xor__", "bitwise_xor", false}, {"__rxor__", "bitwise_xor", true}, {"__lshift__", "bitwise_left_shift", false},
    {"__rshift__", "bitwise_right_shift", false}, {"__matmul__", "matmul", false}, {"__eq__", "eq", false}, {"__ne__", "ne", false},
    {"__lt__", "lt", false},         {"__le__", "le", false},        {"__gt__", "gt", false},       {"__ge__", "ge", false},
};
constexpr Operator kUnary[] = {{"__neg__", "neg", false}, {"__abs__", "abs", false}, {"__invert__", "bitwise_not", false}};

template <typename Held>
void add_operators(py::class_<Held>& type) {
  for (const Operator& binary : kBinary) {
    type.def(binary.name, [binary](const Held& self, py::handle other) {
      Argument left = self.handle, right = to_argument(other, binary.op);
      if (binary.reflected) std::swap(left, right);
      return wrap_handle(self.handle.definition->call(binary.op, {std::move(left), std::move(right)}));
    });
  }
  for (const Operator& unary : kUnary) {
    type.def(unary.name, [unary](const Held& self) { return wrap_handle(self.handle.definition->call(unary.op, {self.handle})); });
  }
  type.def("__hash__", [](const Held& self) { return py::hash(py::make_tuple(reinterpret_cast<std::uintptr_t>(self.handle.definition.get()), self.handle.id)); });
  type.def_property_readonly("index", [](const Held& self) { return self.handle.id; }, "Its number in the definition.");
}

std::string dtype_text(const Handle& handle) {
  const auto dtype = handle.definition->dtype(handle);
  return dtype ? "DataType." + frontend::data_type_name(*dtype) : "unknown";
}

}  // namespace

py::object wrap_handle(const Handle& handle) {
  if (handle.kind == ir::ValueKind::Scalar) return py::cast(ScalarHandle{handle});
  return py::cast(TensorHandle{handle});
}

std::optional<ir::DType> to_data_type(py::handle object) {
  if (object.is_none()) return std::nullopt;
  if (py::isinstance<ir::DType>(object)) {
    const auto dtype = py::cast<ir::DType>(object);
    return dtype == ir::DType::Other ? std::optional<ir::DType>() : dtype;
  }
  const ir::Attr attr = to_attr(object, {}, nullptr);
  const auto* dtype = std::get_if<ir::DType>(&attr.v);
  FXF_CHECK(dtype != nullptr, Type, "a DataType or a torch.dtype is needed, not {}", std::string(py::str(py::type::of(object).attr("__name__"))));
  return *dtype;
}

Argument to_argument(py::handle object, const std::string& where) {
  if (py::isinstance<TensorHandle>(object)) return py::cast<TensorHandle&>(object).handle;
  if (py::isinstance<ScalarHandle>(object)) return py::cast<ScalarHandle&>(object).handle;
  if (py::isinstance<ir::DType>(object)) {
    const auto dtype = to_data_type(object);
    return dtype ? Argument(*dtype) : Argument();
  }
  if (PyTuple_Check(object.ptr()) || PyList_Check(object.ptr())) {
    std::vector<Argument> list;
    for (auto item : py::reinterpret_borrow<py::sequence>(object)) list.push_back(to_argument(item, where));
    return list;
  }
  ir::Attr attr;
  try {
    attr = to_attr(object, {}, nullptr);
  } catch (const py::cast_error&) {  // an int that 64 bits don't hold
    throw_error(ErrorKind::Type, fmt::format("{}: {} does not fit 64 bits", where, std::string(py::repr(object))));
  }
  FXF_CHECK(!std::holds_alternative<ir::Opaque>(attr.v), Type, "{}: an argument is a {}; it takes Tensors and Scalars of the definition, numbers, dtypes and lists of them", where,
            std::string(py::str(py::type::of(object).attr("__name__"))));
  return attr;
}

py::object call_op(frontend::FusionDefinition& definition, const std::string& name, const py::tuple& args, const py::dict& kwargs) {
  const std::string where = "fd.ops." + name;
  std::vector<Argument> positional;
  for (auto item : args) positional.push_back(to_argument(item, where));
  std::map<std::string, Argument> keywords;
  for (auto item : kwargs) keywords.emplace(py::cast<std::string>(item.first), to_argument(item.second, where));
  const std::vector<Handle> results = definition.op(name, std::move(positional), std::move(keywords));
  if (results.size() == 1 && !definition.ops().find(name)->returns_list) return wrap_handle(results[0]);
  py::list out;
  for (const Handle& result : results) out.append(wrap_handle(result));
  return out;
}

void bind_frontend_handles(py::module_& module) {
  py::enum_<ir::DType> types(module, "DataType", "The element types of a definition; a torch.dtype does as well. Null leaves the choice to the op.");
  for (const auto& [name, dtype] : frontend::data_types()) types.value(name.c_str(), dtype);

  py::class_<TensorHandle> tensor(module, "Tensor", "A tensor of a definition; Python's operators are the ops of their names.");
  add_operators(tensor);
  tensor.def_property_readonly("ndim", [](const TensorHandle& self) { return self.handle.definition->rank(self.handle); })
      .def_property_readonly("dtype", [](const TensorHandle& self) { return self.handle.definition->dtype(self.handle).value_or(ir::DType::Other); },
                             "Its DataType; Null where only ATen could tell before it runs.")
      .def_property_readonly("shape", [](const TensorHandle& self) { return call_op(*self.handle.definition, "shape", py::make_tuple(self), {}); }, "Its sizes, a list of Scalar.")
      .def("size", [](const TensorHandle& self, std::int64_t dim) { return call_op(*self.handle.definition, "size", py::make_tuple(self, dim), {}); })
      .def("__repr__", [](const TensorHandle& self) { return fmt::format("Tensor({}, dtype={})", frontend::value_name(self.handle.id, self.handle.kind), dtype_text(self.handle)); });

  py::class_<ScalarHandle> scalar(module, "Scalar", "A number of a definition; Python's operators are the ops of their names.");
  add_operators(scalar);
  scalar.def_property_readonly("dtype", [](const ScalarHandle& self) { return self.handle.definition->dtype(self.handle).value_or(ir::DType::Other); })
      .def("__repr__", [](const ScalarHandle& self) { return fmt::format("Scalar({}, dtype={})", frontend::value_name(self.handle.id, self.handle.kind), dtype_text(self.handle)); });
}

}  // namespace fxfuser::bindings
