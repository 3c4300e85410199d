#include "bindings/call_options.h"

#include "bindings/call_values.h"
#include "bindings/option_values.h"
#include "executor/interface/fxfuser.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

/// Arguments that can be compared without running Python code and can't change afterwards: a name, or a dictionary of flags and
/// names.
bool is_fixed(PyObject* parameters) {
  if (parameters == nullptr || PyUnicode_CheckExact(parameters)) return true;
  if (!PyDict_CheckExact(parameters)) return false;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(parameters, &at, &key, &value) != 0;) {
    if (!PyUnicode_CheckExact(key) || !(PyBool_Check(value) || value == Py_None || PyUnicode_CheckExact(value))) return false;
  }
  return true;
}

bool are_equal(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr || Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyUnicode_CheckExact(a)) return PyUnicode_Compare(a, b) == 0;
  if (!PyDict_CheckExact(a) || PyDict_Size(a) != PyDict_Size(b)) return false;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(a, &at, &key, &value) != 0;) {
    PyObject* other = PyDict_GetItem(b, key);
    if (other != value && (other == nullptr || !PyUnicode_CheckExact(value) || !PyUnicode_CheckExact(other) || PyUnicode_Compare(value, other) != 0)) return false;
  }
  return true;
}

/// What the last call's arguments meant; guarded by the GIL. A call keeps its options while others replace these.
struct LastOptions {
  py::object executor, parameters;
  OptionsPointer options;
};

}  // namespace

OptionsPointer options_of(PyObject* executor, PyObject* parameters) {
  static auto* last = new LastOptions();  // never destroyed, Python may be gone by then
  const bool fixed = is_fixed(parameters);
  if (fixed && last->options != nullptr && are_equal(executor, last->executor.ptr()) && are_equal(parameters, last->parameters.ptr())) return last->options;
  std::string name = "nvfuser";
  if (executor != nullptr) {
    FXF_CHECK(PyUnicode_Check(executor), Type, "executor must be a string, not {}", Py_TYPE(executor)->tp_name);
    name = py::cast<std::string>(py::handle(executor));
  }
  fxfuser::executor::ParsedOptions parsed = parse_options(name, parameters == nullptr ? OptionValues{} : option_values(py::handle(parameters)));
  warn(parsed.warnings, PyExc_UserWarning);
  auto options = std::make_shared<const fxfuser::executor::Options>(std::move(parsed.options));
  if (!fixed || !parsed.warnings.empty()) return options;  // a warned call warns again
  LastOptions fresh;
  if (executor != nullptr) fresh.executor = py::reinterpret_borrow<py::object>(executor);
  if (parameters != nullptr) {
    fresh.parameters = PyDict_Check(parameters) ? py::reinterpret_steal<py::object>(PyDict_Copy(parameters)) : py::reinterpret_borrow<py::object>(parameters);
  }
  fresh.options = options;
  std::swap(*last, fresh);
  return options;
}

namespace {

thread_local const OptionsPointer* running = nullptr;

}  // namespace

RunningOptions::RunningOptions(const OptionsPointer& options) : before_(running) { running = &options; }
RunningOptions::~RunningOptions() { running = before_; }
OptionsPointer RunningOptions::current() { return running == nullptr ? nullptr : *running; }

}  // namespace fxfuser::bindings
