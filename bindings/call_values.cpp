#include "bindings/call_values.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

namespace fxfuser::bindings {

bool to_input(PyObject* object, c10::IValue& out) {
  if (THPVariable_CheckExact(object)) {
    out = THPVariable_Unpack(object);
    return true;
  }
  if (PyBool_Check(object)) return out = c10::IValue(object == Py_True), true;
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return out = c10::IValue(static_cast<std::int64_t>(value)), overflow == 0;
  }
  if (PyFloat_Check(object)) return out = c10::IValue(PyFloat_AS_DOUBLE(object)), true;
  if (object == Py_None) return out = c10::IValue(), true;
  if (PyComplex_Check(object)) return out = c10::IValue(c10::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object))), true;
  if (THPVariable_Check(object)) {
    static PyObject* const buffer = py::object(py::module_::import("torch.nn").attr("Buffer")).release().ptr();
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == buffer) return out = THPVariable_Unpack(object), true;
  }
  return false;
}

void warn(const std::vector<std::string>& texts, PyObject* category) {
  for (const std::string& text : texts) {
    if (PyErr_WarnEx(category, text.c_str(), 2) < 0) throw py::error_already_set();
  }
}

void warn_of_fallback(const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  static PyObject* const category = py::object(py::module_::import("fxfuser.warnings").attr("FallbackWarning")).release().ptr();
  warn(texts, category);
}

py::object to_python(c10::IValue&& value) {
  if (value.isTensor()) return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(value).toTensor()));
  return torch::jit::toPyObject(std::move(value));
}

}  // namespace fxfuser::bindings
