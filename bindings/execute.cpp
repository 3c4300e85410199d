#include "bindings/execute.h"

#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "bindings/attr_convert.h"
#include "bindings/handle.h"
#include "executor/interface/fxfuser.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

struct Call {
  PyObject* module = nullptr;
  PyObject* const* args = nullptr;
  Py_ssize_t count = 0;
  PyObject* executor = nullptr;    // borrowed; null: the default
  PyObject* parameters = nullptr;  // borrowed; null: none
  py::object kwargs;               // the module's own keyword arguments; null when there are none
};

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

using OptionsPointer = std::shared_ptr<const executor::Options>;

/// What the last call's arguments meant; guarded by the GIL. A call keeps its options while others replace these.
struct LastOptions {
  py::object executor, parameters;
  OptionsPointer options;
};

OptionsPointer options_of(const Call& call) {
  static auto* last = new LastOptions();  // never destroyed, Python may be gone by then
  const bool fixed = is_fixed(call.parameters);
  if (fixed && last->options != nullptr && are_equal(call.executor, last->executor.ptr()) && are_equal(call.parameters, last->parameters.ptr())) return last->options;
  std::string name = "nvfuser";
  if (call.executor != nullptr) {
    FXF_CHECK(PyUnicode_Check(call.executor), Type, "executor must be a string, not {}", Py_TYPE(call.executor)->tp_name);
    name = py::cast<std::string>(py::handle(call.executor));
  }
  std::map<std::string, ir::Attr> values;
  if (call.parameters != nullptr) {
    const py::object parameters = py::module_::import("fxfuser.parameters").attr("resolve")(py::handle(call.parameters));
    for (auto item : py::cast<py::dict>(parameters)) values[py::cast<std::string>(item.first)] = to_attr(item.second, {}, nullptr);
  }
  executor::ParsedOptions parsed = service().parse_options(name, values);
  for (const std::string& warning : parsed.warnings) {
    if (PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 2) < 0) throw py::error_already_set();
  }
  auto options = std::make_shared<const executor::Options>(std::move(parsed.options));
  if (!fixed || !parsed.warnings.empty()) return options;  // a warned call warns again
  LastOptions fresh;
  if (call.executor != nullptr) fresh.executor = py::reinterpret_borrow<py::object>(call.executor);
  if (call.parameters != nullptr) {
    fresh.parameters = PyDict_Check(call.parameters) ? py::reinterpret_steal<py::object>(PyDict_Copy(call.parameters)) : py::reinterpret_borrow<py::object>(call.parameters);
  }
  fresh.options = options;
  std::swap(*last, fresh);
  return options;
}

py::object kwargs_of(const Call& call) { return call.kwargs.ptr() == nullptr ? py::object(py::dict()) : call.kwargs; }

py::tuple tuple_of(PyObject* const* items, Py_ssize_t count) {
  py::tuple out(count);
  for (Py_ssize_t i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = py::handle(items[i]);
  return out;
}

py::object run_original(const Call& call, PyObject* const* args, Py_ssize_t count) {
  const py::tuple arguments = tuple_of(args, count);
  PyObject* result = PyObject_Call(call.module, arguments.ptr(), call.kwargs.ptr());
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

/// A leaf as the plan takes it; false when only the module itself can take it (subclasses, other objects).
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

bool owners_hold(const Handle& handle) {
  for (const OwnerCheck& check : handle.owners) {
    if (PyDict_GetItem(check.owner.ptr(), check.key.ptr()) != check.expected) return false;
  }
  return true;
}

void warn(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    static PyObject* const category = py::object(py::module_::import("fxfuser.warnings").attr("FallbackWarning")).release().ptr();
    if (PyErr_WarnEx(category, text.c_str(), 2) < 0) throw py::error_already_set();
  }
}

py::object to_python(c10::IValue&& value) {
  if (value.isTensor()) return py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(value).toTensor()));
  return torch::jit::toPyObject(std::move(value));
}

py::object results(const Handle& handle, std::vector<c10::IValue>&& values) {
  if (handle.form == OutputForm::Single) return to_python(std::move(values.at(0)));
  if (handle.form == OutputForm::Tuple) {
    py::tuple out(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = to_python(std::move(values[i]));
    return out;
  }
  py::list out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = to_python(std::move(values[i]));
  if (handle.form == OutputForm::List) return out;
  return handle.unflatten(out);
}

[[noreturn]] void wrong_count(const Handle& handle, Py_ssize_t count, bool strict) {
  const std::string text = fmt::format(
      "Number of placeholder nodes in the graph must match the number of arguments: the module takes {} and was given {} (read as "
      "execute(gm, *args); a single tuple or list is read as execute(gm, args) when its length is {})",
      handle.placeholders, count, handle.placeholders);
  PyErr_SetString(strict ? PyExc_AssertionError : PyExc_TypeError, text.c_str());
  throw py::error_already_set();
}

/// An object that no plan takes: the module runs as itself, or under strict the call is refused.
py::object run_for(PyObject* object, const Call& call, const executor::Options& options, PyObject* const* args, Py_ssize_t count) {
  FXF_CHECK(options.mode != executor::Mode::Strict, Value, "strictly_nvfuser can't take this call: an input or constant is {}, not a plain tensor or number",
            object == nullptr ? "gone" : Py_TYPE(object)->tp_name);
  return run_original(call, args, count);
}

py::object run_program(const Call& call, const Handle& handle, const executor::Options& options, PyObject* const* leaves, Py_ssize_t count,
                       PyObject* const* args, Py_ssize_t arg_count) {
  c10::SmallVector<c10::IValue, 16> inputs(static_cast<std::size_t>(count) + handle.constants.size());
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!to_input(leaves[i], inputs[static_cast<std::size_t>(i)])) return run_for(leaves[i], call, options, args, arg_count);
  }
  for (std::size_t i = 0; i < handle.constants.size(); ++i) {
    const ConstantSource& source = handle.constants[i];
    PyObject* object = constant_of(call.module, source);
    if (object == nullptr || !to_input(object, inputs[static_cast<std::size_t>(count) + i])) return run_for(object, call, options, args, arg_count);
  }
  std::shared_ptr<Program> program = handle.program;  // the module may die during the call
  std::vector<c10::IValue> outputs;
  RunResult result;
  {
    py::gil_scoped_release released;
    result = program->run(options, inputs, outputs);
  }
  if (!result.warnings.empty()) warn(result.warnings);
  if (result.status == RunStatus::RunOriginal) return run_original(call, args, arg_count);
  return results(handle, std::move(outputs));
}

py::object slow_call(const Call& call, const Handle& handle, PyObject* const* args, Py_ssize_t count) {
  const py::object executor = call.executor == nullptr ? py::str("nvfuser") : py::reinterpret_borrow<py::object>(call.executor);
  const py::object parameters = call.parameters == nullptr ? py::none() : py::reinterpret_borrow<py::object>(call.parameters);
  const py::object kwargs = kwargs_of(call);
  return handle.slow(py::handle(call.module), tuple_of(args, count), kwargs, executor, parameters);
}

std::shared_ptr<Handle> handle_of(PyObject* module) {
  std::shared_ptr<Handle> handle = find_handle(module);
  if (handle == nullptr || !owners_hold(*handle)) {
    py::module_::import("fxfuser.fx_import").attr("attach")(py::handle(module));
    handle = find_handle(module);
    FXF_ASSERT(handle != nullptr, "the module was not attached");
  }
  return handle;
}

py::object execute_call(const Call& call) {
  const OptionsPointer held_options = options_of(call);
  const executor::Options& options = *held_options;
  if (options.mode == executor::Mode::Aten) {
    // Named-tuple nodes don't run as they are; everything else is the module itself.
    return py::module_::import("fxfuser.fx_import").attr("run_aten")(py::handle(call.module), tuple_of(call.args, call.count),
                                                                       kwargs_of(call));
  }
  const std::shared_ptr<Handle> held = handle_of(call.module);  // caches may be cleared while the call runs
  const Handle& handle = *held;
  if (handle.program == nullptr) return slow_call(call, handle, call.args, call.count);
  const bool strict = options.mode == executor::Mode::Strict;
  if (strict && !handle.not_a_fusion.empty()) {
    PyErr_SetString(PyExc_AssertionError, handle.not_a_fusion.c_str());
    throw py::error_already_set();
  }
  const auto placeholders = static_cast<Py_ssize_t>(handle.placeholders);
  PyObject* const* args = call.args;
  Py_ssize_t count = call.count;
  if (handle.overrides != overrides_of(call.module)) {
    FXF_CHECK(!strict, Value, "strictly_nvfuser can't take this module: it has hooks, or a forward of its own");
    return py::module_::import("fxfuser.lowering").attr("call_module")(py::handle(call.module), tuple_of(args, count), kwargs_of(call));
  }
  const bool wrapped = count == 1 && call.kwargs.ptr() == nullptr && (PyTuple_CheckExact(args[0]) || PyList_CheckExact(args[0]));
  py::object sequence;
  if (handle.flat && call.kwargs.ptr() == nullptr) {
    if (wrapped && PySequence_Fast_GET_SIZE(args[0]) == placeholders) {
      sequence = PyTuple_CheckExact(args[0]) ? py::reinterpret_borrow<py::object>(args[0]) : py::reinterpret_steal<py::object>(PySequence_Tuple(args[0]));
      args = PySequence_Fast_ITEMS(sequence.ptr());  // of a tuple: a list may change while the call runs
      count = placeholders;
    }
    if (count == placeholders) return run_program(call, handle, options, args, count, args, count);
  }
  // Structured inputs, keyword inputs and defaults: flattened in Python by the module's own structure.
  const py::object kwargs = kwargs_of(call);
  const py::object flat = py::module_::import("fxfuser.fx_import").attr("flatten_inputs")(py::handle(call.module), tuple_of(args, count), kwargs);
  if (flat.is_none()) wrong_count(handle, count, strict);
  const auto pair = py::cast<py::tuple>(flat);
  const py::tuple leaves(py::cast<py::list>(pair[0]));
  const auto original = py::cast<py::tuple>(pair[1]);
  if (static_cast<Py_ssize_t>(leaves.size()) != placeholders) wrong_count(handle, static_cast<Py_ssize_t>(leaves.size()), strict);
  return run_program(call, handle, options, PySequence_Fast_ITEMS(leaves.ptr()), placeholders, PySequence_Fast_ITEMS(original.ptr()),
                     static_cast<Py_ssize_t>(original.size()));
}

void set_python_error(const Error& error) {
  PyObject* type = PyExc_RuntimeError;
  switch (error.kind()) {
    case ErrorKind::Value: type = PyExc_ValueError; break;
    case ErrorKind::Type: type = PyExc_TypeError; break;
    case ErrorKind::NotImplemented: type = PyExc_NotImplementedError; break;
    case ErrorKind::Runtime:
    case ErrorKind::Internal: break;
  }
  PyErr_SetString(type, error.what());
}

PyObject* execute_fastcall(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  HANDLE_TH_ERRORS
  Call call;
  if (nargs < 1) {
    PyErr_SetString(PyExc_TypeError, "execute(gm, *args, executor='nvfuser', executor_parameters=None): the module is missing");
    return nullptr;
  }
  call.module = args[0];
  call.args = args + 1;
  call.count = nargs - 1;
  static PyObject* const executor_name = PyUnicode_InternFromString("executor");
  static PyObject* const parameters_name = PyUnicode_InternFromString("executor_parameters");
  const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* key = PyTuple_GET_ITEM(names, i);
    PyObject* value = args[nargs + i];
    if (key == executor_name || PyUnicode_Compare(key, executor_name) == 0) {
      call.executor = value;
    } else if (key == parameters_name || PyUnicode_Compare(key, parameters_name) == 0) {
      call.parameters = value == Py_None ? nullptr : value;
    } else {
      if (call.kwargs.ptr() == nullptr) call.kwargs = py::dict();
      if (PyDict_SetItem(call.kwargs.ptr(), key, value) < 0) return nullptr;
    }
  }
  try {
    return execute_call(call).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  } catch (const Error& error) {
    set_python_error(error);
    return nullptr;
  }
  END_HANDLE_TH_ERRORS
}

// The text signature line makes inspect.signature(fxfuser.execute) work.
constexpr const char* kExecuteDoc =
    "execute(gm, *args, executor='nvfuser', executor_parameters=None, **kwargs)\n--\n\n"
    "Runs a GraphModule, fusing what generated kernels can compute and sending the rest through ATen.\n\n"
    "Args:\n"
    "    gm: a torch.fx.GraphModule (make_fx, torch.export's ep.module(), symbolic_trace).\n"
    "    *args, **kwargs: the module's own arguments, or one tuple or list holding them.\n"
    "    executor: 'nvfuser' fuses what it can, 'strictly_nvfuser' fuses everything or raises ValueError, 'aten' runs the module.\n"
    "    executor_parameters: a dictionary of options or the name of a stored one ('default', 'strict', 'latency', 'debug').\n\n"
    "Returns:\n"
    "    What gm(*args) returns: the same structure, dtypes, shapes, strides, devices and aliasing.\n\n"
    "Raises:\n"
    "    ValueError: an unknown executor or parameter value; a graph that 'strictly_nvfuser' can't take.\n"
    "    TypeError: a wrong number or type of arguments or of a parameter.\n\n"
    "Example:\n"
    "    >>> gm = make_fx(lambda x: torch.sigmoid(x) * 2)(torch.randn(3))\n"
    "    >>> y = execute(gm, torch.randn(3))\n";

PyMethodDef execute_method = {"execute", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(execute_fastcall)),
                              METH_FASTCALL | METH_KEYWORDS, kExecuteDoc};

}  // namespace

void register_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      set_python_error(error);
    }
  });
}

void bind_execute(py::module_& module) {
  PyObject* function = PyCFunction_NewEx(&execute_method, nullptr, py::str("fxfuser").release().ptr());
  module.attr("execute") = py::reinterpret_steal<py::object>(function);
}

}  // namespace fxfuser::bindings
