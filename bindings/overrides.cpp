#include "bindings/overrides.h"

#include <array>
#include <string_view>

namespace fxfuser::bindings {
namespace {

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

/// torch.export's modules carry a hook that checks their inputs.
bool is_brought_by_export(PyObject* hook) {
  static PyObject* const name = interned("__module__");
  PyObject* where = PyObject_GetAttr(hook, name);
  if (where == nullptr) {
    PyErr_Clear();
    return false;
  }
  const char* text = PyUnicode_Check(where) ? PyUnicode_AsUTF8(where) : nullptr;
  const std::string_view module = text != nullptr ? text : "";
  const bool brought = module.starts_with("torch.export.") || module.starts_with("torch._export.");
  Py_DECREF(where);
  return brought;
}

bool holds_hook(PyObject* registered) {
  if (registered == nullptr || !PyDict_Check(registered) || PyDict_Size(registered) == 0) return false;
  PyObject *key = nullptr, *hook = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(registered, &at, &key, &hook) != 0;) {
    if (!is_brought_by_export(hook)) return true;
  }
  return false;
}

}  // namespace

bool has_hooks(PyObject* module) {
  static PyObject* const hooks[] = {interned("_forward_hooks"), interned("_forward_pre_hooks"), interned("_backward_hooks"), interned("_backward_pre_hooks")};
  PyObject** dict = _PyObject_GetDictPtr(module);
  if (dict == nullptr || *dict == nullptr) return false;
  for (PyObject* name : hooks) {
    if (holds_hook(PyDict_GetItem(*dict, name))) return true;
  }
  return false;
}

bool has_override(PyObject* root) {
  static PyObject* const forward = interned("forward");
  PyObject** dict = _PyObject_GetDictPtr(root);
  return (dict != nullptr && *dict != nullptr && PyDict_GetItem(*dict, forward) != nullptr) || has_hooks(root);
}

bool has_global_hooks() {
  // The dictionaries are torch's own and live as long as it does.
  static const std::array<PyObject*, 4> all = [] {
    std::array<PyObject*, 4> found{};
    const py::module_ source = py::module_::import("torch.nn.modules.module");
    std::size_t at = 0;
    for (const char* name : {"_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks"}) {
      found[at++] = py::object(source.attr(name)).release().ptr();
    }
    return found;
  }();
  for (PyObject* registered : all) {
    if (PyDict_Check(registered) && PyDict_Size(registered) > 0) return true;
  }
  return false;
}

void bind_overrides(py::module_& module) {
  module.def(
      "has_overrides",
      [](py::handle root) {
        if (has_global_hooks() || has_override(root.ptr())) return true;
        for (py::handle item : root.attr("modules")()) {
          if (has_hooks(item.ptr())) return true;
        }
        return false;
      },
      "True when the module or one of its submodules has hooks, the module a forward of its instance, or a hook is registered for all.");
}

}  // namespace fxfuser::bindings
