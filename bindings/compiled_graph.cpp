#include "bindings/compiled_graph.h"

#include <structmember.h>

#include <cstddef>
#include <new>

#include "bindings/execute.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

struct CompiledGraph {
  PyObject_HEAD
  vectorcallfunc call;
  PyObject* module;
  PyObject* executor;
  PyObject* parameters;  // a dictionary of our own
  OptionsPointer options;
};

CompiledGraph* self_of(PyObject* object) { return reinterpret_cast<CompiledGraph*>(object); }

PyObject* call_graph(PyObject* object, PyObject* const* args, std::size_t count, PyObject* names) {
  CompiledGraph* self = self_of(object);
  Call call;
  call.module = self->module;
  call.args = args;
  call.count = PyVectorcall_NARGS(count);
  call.executor = self->executor;
  call.parameters = self->parameters;
  call.options = self->options;
  const Py_ssize_t keywords = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    if (!add_keyword(call, PyTuple_GET_ITEM(names, i), args[call.count + i])) return nullptr;
  }
  return run_call(call);
}

PyObject* make_graph(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *module = nullptr, *executor = nullptr, *parameters = nullptr;
  if (PyArg_ParseTuple(args, "OUO!", &module, &executor, &PyDict_Type, &parameters) == 0) return nullptr;
  OptionsPointer options;
  if (!completes([&] { options = options_of(executor, parameters); })) return nullptr;
  PyObject* copy = PyDict_Copy(parameters);
  if (copy == nullptr) return nullptr;
  PyObject* object = type->tp_alloc(type, 0);
  if (object == nullptr) {
    Py_DECREF(copy);
    return nullptr;
  }
  CompiledGraph* self = self_of(object);
  self->call = call_graph;
  self->module = Py_NewRef(module);
  self->executor = Py_NewRef(executor);
  self->parameters = copy;
  new (&self->options) OptionsPointer(std::move(options));
  return object;
}

int traverse(PyObject* object, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self_of(object)->module);
  Py_VISIT(self_of(object)->parameters);
  return 0;
}

int clear(PyObject* object) {
  Py_CLEAR(self_of(object)->module);
  Py_CLEAR(self_of(object)->parameters);
  return 0;
}

void destroy(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clear(object);
  Py_CLEAR(self_of(object)->executor);
  self_of(object)->options.~OptionsPointer();
  type->tp_free(object);
  Py_DECREF(type);
}

/// explain(module, *args, executor=..., executor_parameters=...).
PyObject* report(PyObject* object, PyObject* args) {
  const CompiledGraph* self = self_of(object);
  try {
    py::dict keywords;
    keywords["executor"] = py::handle(self->executor);
    keywords["executor_parameters"] = py::handle(self->parameters);
    return py::module_::import("fxfuser.report").attr("explain")(py::handle(self->module), *py::reinterpret_borrow<py::tuple>(args), **keywords).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  }
}

PyObject* source(PyObject* object, PyObject* kernel) {
  const py::object found = py::reinterpret_steal<py::object>(report(object, py::tuple().ptr()));
  if (found.ptr() == nullptr) return nullptr;
  static PyObject* const name = PyUnicode_InternFromString("source");
  return PyObject_CallMethodOneArg(found.ptr(), name, kernel);
}

PyMethodDef methods[] = {
    {"report", report, METH_VARARGS, "report(*args)\n--\n\nWhat is fused for these inputs (or for the traced ones), and why the rest is not."},
    {"source", source, METH_O, "source(kernel)\n--\n\nThe text of a generated kernel, by its index in the report or its name."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledGraph, call), READONLY, nullptr}, {nullptr, 0, 0, 0, nullptr}};

constexpr const char* kDoc =
    "What ``prepare`` returns: call it like the module it was made from.\n\n"
    "Example:\n"
    "    >>> run = prepare(gm, rounding=\"eager\")\n"
    "    >>> y = run(x)\n"
    "    >>> print(run.report())\n";

PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make_graph)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                       {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(clear)},
                       {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                       {Py_tp_methods, methods},
                       {Py_tp_members, members},
                       {Py_tp_doc, const_cast<char*>(kDoc)},
                       {0, nullptr}};

PyType_Spec spec = {"fxfuser.CompiledGraph", sizeof(CompiledGraph), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

}  // namespace

void bind_compiled_graph(py::module_& module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  module.attr("CompiledGraph") = py::reinterpret_steal<py::object>(type);
}

}  // namespace fxfuser::bindings
