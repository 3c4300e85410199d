#include "bindings/execute.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cmath>

#include "bindings/attr_convert.h"
#include "bindings/call_values.h"
#include "bindings/handle.h"
#include "bindings/overrides.h"
#include "executor/interface/fxfuser.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

py::object execute_call(const Call& call);

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

/// The flat results of a module: what the program computed, with the objects that are returned as they are between them.
py::object results(const Handle& handle, std::vector<c10::IValue>&& values) {
  std::size_t next = 0;
  const auto result = [&](std::size_t at) { return handle.fixed[at].ptr() != nullptr ? handle.fixed[at] : to_python(std::move(values.at(next++))); };
  if (handle.form == OutputForm::Single) return result(0);
  const std::size_t count = handle.fixed.size();
  if (handle.form == OutputForm::Tuple) {
    py::tuple out(count);
    for (std::size_t i = 0; i < count; ++i) out[i] = result(i);
    return out;
  }
  py::list out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = result(i);
  if (handle.form == OutputForm::List) return out;
  return handle.unflatten(out);
}

[[noreturn]] void wrong_arguments(const Call& call, bool strict) {
  const py::object text = py::module_::import("fxfuser.calls").attr("mismatch")(py::handle(call.module), tuple_of(call.args, call.count), kwargs_of(call));
  PyErr_SetObject(strict ? PyExc_AssertionError : PyExc_TypeError, text.ptr());
  throw py::error_already_set();
}

bool same_number(PyObject* a, PyObject* b) {
  if (PyFloat_Check(a) && PyFloat_Check(b) && std::isnan(PyFloat_AS_DOUBLE(a)) && std::isnan(PyFloat_AS_DOUBLE(b))) return true;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) throw py::error_already_set();
  return equal == 1;
}

/// A number that no node reads: its value was written into the graph by tracing, so another one gives the same result, in eager as
/// here. Told once a module.
void check_baked(const Handle& handle, const executor::Options& options, PyObject* const* leaves) {
  for (BakedInput& input : handle.baked) {
    PyObject* const given = leaves[input.index];
    if (!PyLong_Check(given) && !PyFloat_Check(given)) continue;
    if (input.first.ptr() == nullptr) input.first = py::reinterpret_borrow<py::object>(given);
    const bool strict = options.mode == executor::Mode::Strict;
    if ((input.told && !strict) || same_number(input.first.ptr(), given)) continue;
    const std::string text = fmt::format("argument {} is {} and was {}, but no node of the graph reads it: tracing wrote its value into the graph. Trace with a tensor in its place",
                                         input.index, py::cast<std::string>(py::repr(given)), py::cast<std::string>(py::repr(input.first)));
    FXF_CHECK(!strict, Value, "{}", text);
    input.told = true;
    warn({text}, PyExc_UserWarning);
  }
}

bool runs_around(const Call& call, const Handle& handle) {
  if (has_global_hooks() || has_override(call.module)) return true;
  for (const py::object& module : handle.called) {
    if (has_hooks(module.ptr())) return true;
  }
  return false;
}

/// An object that no plan takes: the module runs as itself, or under strict the call is refused.
py::object run_for(PyObject* object, const Call& call, const executor::Options& options, PyObject* const* args, Py_ssize_t count) {
  FXF_CHECK(options.mode != executor::Mode::Strict, Value, "strictly_nvfuser can't take this call: an input or constant is {}, not a plain tensor or number",
            object == nullptr ? "gone" : Py_TYPE(object)->tp_name);
  return run_original(call, args, count);
}

class Gil final : public HostLock {
 public:
  void give_up() override { state_ = PyEval_SaveThread(); }
  void take_back() override { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_ = nullptr;
};

/// A constant is no longer where the import found it (a parameter that became a buffer): the module is read anew, once a call.
py::object run_anew(const Call& call) {
  drop_handle(call.module);
  Call again = call;
  again.read_anew = true;
  return execute_call(again);
}

py::object run_program(const Call& call, const Handle& handle, const executor::Options& options, PyObject* const* leaves, Py_ssize_t count,
                       PyObject* const* args, Py_ssize_t arg_count) {
  c10::SmallVector<c10::IValue, 16> inputs(static_cast<std::size_t>(count) + handle.constants.size());
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!to_input(leaves[i], inputs[static_cast<std::size_t>(i)])) return run_for(leaves[i], call, options, args, arg_count);
  }
  if (!handle.baked.empty()) check_baked(handle, options, leaves);
  for (std::size_t i = 0; i < handle.constants.size(); ++i) {
    const ConstantSource& source = handle.constants[i];
    PyObject* object = constant_of(call.module, source);
    if (object == nullptr && !call.read_anew) return run_anew(call);
    if (object == nullptr || !to_input(object, inputs[static_cast<std::size_t>(count) + i])) return run_for(object, call, options, args, arg_count);
  }
  std::shared_ptr<Program> program = handle.program;  // the module may die during the call
  std::vector<c10::IValue> outputs;
  Gil gil;
  RunResult result;
  std::vector<c10::IValue> given;
  if (call.given != nullptr) {
    given.assign(std::make_move_iterator(inputs.begin()), std::make_move_iterator(inputs.end()));
    *call.given = py::object();  // from here on `given` alone holds them
    result = program->run_boxed(options, given, outputs, &gil);
  } else {
    result = program->run(options, inputs, outputs, &gil);
  }
  if (!result.nothing_fused.empty() && !call.from_compiler) result.warnings.push_back(result.nothing_fused);
  warn_of_fallback(result.warnings);
  if (result.status == RunStatus::Ran) return results(handle, std::move(outputs));
  if (call.given == nullptr) return run_original(call, args, arg_count);
  py::tuple again(count);
  for (std::size_t i = 0; i < again.size(); ++i) again[i] = to_python(std::move(given[i]));
  return run_original(call, PySequence_Fast_ITEMS(again.ptr()), count);
}

py::object slow_call(const Call& call, const Handle& handle, PyObject* const* args, Py_ssize_t count) {
  const py::object executor = call.executor == nullptr ? py::str("nvfuser") : py::reinterpret_borrow<py::object>(call.executor);
  const py::object parameters = call.parameters == nullptr ? py::none() : py::reinterpret_borrow<py::object>(call.parameters);
  const py::object kwargs = kwargs_of(call);
  return handle.slow(py::handle(call.module), tuple_of(args, count), kwargs, executor, parameters);
}

std::shared_ptr<Handle> handle_of(PyObject* module) {
  std::shared_ptr<Handle> handle = find_handle(module);
  if (handle == nullptr || !owners_hold(module, *handle)) {
    py::module_::import("fxfuser.fx_import").attr("attach")(py::handle(module));
    handle = find_handle(module);
    FXF_ASSERT(handle != nullptr, "the module was not attached");
  } else if (nodes_changed(*handle)) {
    py::module_::import("fxfuser.fx_import").attr("tell_edit")(py::handle(module));
  }
  return handle;
}

py::object execute_call(const Call& call) {
  const OptionsPointer held_options = call.options != nullptr ? call.options : options_of(call.executor, call.parameters);
  const executor::Options& options = *held_options;
  const RunningOptions running(held_options);
  if (options.mode == executor::Mode::Aten) {
    // Named-tuple nodes don't run as they are; everything else is the module itself.
    return py::module_::import("fxfuser.calls").attr("run_aten")(py::handle(call.module), tuple_of(call.args, call.count),
                                                                       kwargs_of(call));
  }
  if (c10::impl::dispatch_mode_enabled() || at::impl::torch_function_mode_enabled()) {
    // Before the import: a mode would see that too.
    return py::module_::import("fxfuser.lowering").attr("run_in_mode")(py::handle(call.module), tuple_of(call.args, call.count), kwargs_of(call), options.mode == executor::Mode::Strict);
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
  if (runs_around(call, handle)) {
    return py::module_::import("fxfuser.lowering").attr("run_with_hooks")(py::handle(call.module), tuple_of(args, count), kwargs_of(call), strict);
  }
  const bool wrapped = count == 1 && call.kwargs.ptr() == nullptr && (PyTuple_CheckExact(args[0]) || PyList_CheckExact(args[0]));
  py::object sequence;
  if (handle.takes_sequence && wrapped && PySequence_Fast_GET_SIZE(args[0]) == placeholders) {
    sequence = py::module_::import("fxfuser.lowering").attr("reading_of")(py::handle(call.module), tuple_of(args, count), kwargs_of(call));
    args = PySequence_Fast_ITEMS(sequence.ptr());
    count = PySequence_Fast_GET_SIZE(sequence.ptr());
  }
  if (handle.flat && call.kwargs.ptr() == nullptr) {
    if (wrapped && PySequence_Fast_GET_SIZE(args[0]) == placeholders && !handle.takes_sequence) {
      sequence = PyTuple_CheckExact(args[0]) ? py::reinterpret_borrow<py::object>(args[0]) : py::reinterpret_steal<py::object>(PySequence_Tuple(args[0]));
      args = PySequence_Fast_ITEMS(sequence.ptr());  // of a tuple: a list may change while the call runs
      count = placeholders;
    }
    if (count == placeholders) return run_program(call, handle, options, args, count, args, count);
  }
  // Structured inputs, keyword inputs and defaults: flattened in Python by the module's own structure.
  const py::object kwargs = kwargs_of(call);
  const py::object flat = py::module_::import("fxfuser.calls").attr("flatten_inputs")(py::handle(call.module), tuple_of(args, count), kwargs);
  if (flat.is_none()) wrong_arguments(call, strict);
  const auto pair = py::cast<py::tuple>(flat);
  const py::tuple leaves(py::cast<py::list>(pair[0]));
  const auto original = py::cast<py::tuple>(pair[1]);
  if (static_cast<Py_ssize_t>(leaves.size()) != placeholders) wrong_arguments(call, strict);
  Call held_call = call;
  held_call.given = nullptr;  // both lists hold the inputs
  return run_program(held_call, handle, options, PySequence_Fast_ITEMS(leaves.ptr()), placeholders, PySequence_Fast_ITEMS(original.ptr()),
                     static_cast<Py_ssize_t>(original.size()));
}

}  // namespace

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

bool add_keyword(Call& call, PyObject* name, PyObject* value) {
  if (call.kwargs.ptr() == nullptr) call.kwargs = py::reinterpret_steal<py::object>(PyDict_New());
  return call.kwargs.ptr() != nullptr && PyDict_SetItem(call.kwargs.ptr(), name, value) == 0;
}

PyObject* run_call(const Call& call) {
  HANDLE_TH_ERRORS
  PyObject* result = nullptr;
  return completes([&] { result = execute_call(call).release().ptr(); }) ? result : nullptr;
  END_HANDLE_TH_ERRORS
}

namespace {

PyObject* execute_fastcall(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
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
    } else if (!add_keyword(call, key, value)) {
      return nullptr;
    }
  }
  return run_call(call);
}

/// execute_boxed(gm, inputs, executor_parameters): takes the inputs out of the list; each is let go of after its last use. Without
/// parameters it has the options of the call that it is a part of.
PyObject* boxed_fastcall(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  HANDLE_TH_ERRORS
  if (nargs != 3 || !PyList_CheckExact(args[1])) {
    PyErr_SetString(PyExc_TypeError, "execute_boxed takes a module, a list of inputs and executor_parameters");
    return nullptr;
  }
  py::object inputs = py::reinterpret_steal<py::object>(PyList_AsTuple(args[1]));
  if (PyList_SetSlice(args[1], 0, PyList_GET_SIZE(args[1]), nullptr) < 0) return nullptr;
  Call call;
  call.module = args[0];
  call.args = PySequence_Fast_ITEMS(inputs.ptr());
  call.count = PyTuple_GET_SIZE(inputs.ptr());
  call.parameters = args[2] == Py_None ? nullptr : args[2];
  if (call.parameters == nullptr) call.options = RunningOptions::current();
  call.from_compiler = true;
  call.given = &inputs;
  return run_call(call);
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
PyMethodDef boxed_method = {"execute_boxed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(boxed_fastcall)), METH_FASTCALL,
                            "Runs a compiler's graph on a list of inputs and empties the list."};

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
  module.attr("execute_boxed") = py::reinterpret_steal<py::object>(PyCFunction_NewEx(&boxed_method, nullptr, py::str("fxfuser").release().ptr()));
}

}  // namespace fxfuser::bindings
