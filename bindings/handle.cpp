#include "bindings/handle.h"

#include <unordered_map>

#include "bindings/graph_builder.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

using HandleMap = std::unordered_map<PyObject*, std::shared_ptr<Handle>>;

HandleMap& handles() {
  static auto* map = new HandleMap();  // guarded by the GIL; never destroyed, Python may be gone by then
  return *map;
}

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

PyObject* graph_of(PyObject* module) {
  static PyObject* const name = interned("_graph");
  PyObject** dict = _PyObject_GetDictPtr(module);
  return dict != nullptr && *dict != nullptr ? PyDict_GetItem(*dict, name) : nullptr;
}

PyObject* forward_of(PyObject* module) {
  static PyObject* const name = interned("forward");
  return _PyType_Lookup(Py_TYPE(module), name);
}

}  // namespace

std::size_t overrides_of(PyObject* module) {
  static PyObject* const forward = interned("forward");
  static PyObject* const hooks[] = {interned("_forward_hooks"), interned("_forward_pre_hooks")};
  PyObject** dict = _PyObject_GetDictPtr(module);
  if (dict == nullptr || *dict == nullptr) return 0;
  std::size_t count = PyDict_GetItem(*dict, forward) != nullptr ? std::size_t{1} << 32 : 0;
  for (PyObject* name : hooks) {
    PyObject* registered = PyDict_GetItem(*dict, name);
    if (registered != nullptr && PyDict_Check(registered)) count += static_cast<std::size_t>(PyDict_Size(registered));
  }
  return count;
}

std::shared_ptr<Handle> find_handle(PyObject* module) {
  auto found = handles().find(module);
  if (found == handles().end()) return nullptr;
  const std::shared_ptr<Handle>& handle = found->second;
  if (handle->forward.ptr() != forward_of(module) || handle->graph != graph_of(module)) return nullptr;
  return handle;
}

void attach_handle(py::handle module, Handle&& handle) {
  PyObject* key = module.ptr();
  handle.forward = py::reinterpret_borrow<py::object>(forward_of(key));
  handle.graph = graph_of(key);
  handle.overrides = overrides_of(key);
  handle.weak = py::weakref(module, py::cpp_function([key](py::handle) { handles().erase(key); }));
  auto fresh = std::make_shared<Handle>(std::move(handle));
  std::swap(handles()[key], fresh);  // the old one is destroyed after the map is whole again
}

PyObject* constant_of(PyObject* module, const ConstantSource& source) {
  if (source.owner.ptr() != nullptr) return PyDict_GetItem(source.owner.ptr(), source.key.ptr());
  PyObject** dict = _PyObject_GetDictPtr(module);
  return dict != nullptr && *dict != nullptr ? PyDict_GetItem(*dict, source.key.ptr()) : nullptr;
}

std::size_t handle_count() { return handles().size(); }
void drop_handles() {
  HandleMap dropped;
  std::swap(dropped, handles());
}

/// A fusion computes tensors: at least one node, and nothing but tensors out. The words are those that callers match.
std::string why_not_a_fusion(const ir::Graph& graph) {
  if (graph.nodes.empty()) return "Graph must contain at least one call_function node to be one fusion";
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ir::Attr& output = graph.outputs[i];
    if (output.is_value() && graph.value(output.value()).kind != ir::ValueKind::Scalar) continue;
    return fmt::format("output from codegen has to be tensor type: output {} of the graph is {}", i, output.is_none() ? "None" : "no tensor");
  }
  return {};
}

void bind_handles(py::module_& module) {
  module.def(
      "attach",
      [](py::object target, GraphBuilder& builder, std::size_t placeholders, bool flat, const std::string& form, py::object unflatten,
         const py::list& owners, const py::list& constants) {
        Handle handle;
        ImportedGraph imported = builder.take();
        handle.not_a_fusion = why_not_a_fusion(imported.graph);
        handle.program = service().import(std::move(imported));
        handle.placeholders = placeholders;
        handle.flat = flat;
        handle.form = form == "single" ? OutputForm::Single : form == "tuple" ? OutputForm::Tuple : form == "list" ? OutputForm::List : OutputForm::Tree;
        handle.unflatten = std::move(unflatten);
        for (auto item : owners) {
          const auto check = py::cast<py::tuple>(item);
          handle.owners.push_back({check[0], check[1], check[2].ptr()});
        }
        for (auto item : constants) {
          const auto source = py::cast<py::tuple>(item);
          handle.constants.push_back({source[0].is_none() ? py::object() : py::object(source[0]), source[1]});
        }
        attach_handle(target, std::move(handle));
      },
      "Gives a module its program.");
  module.def(
      "attach_slow",
      [](py::object target, py::object slow) {
        Handle handle;
        handle.slow = std::move(slow);
        attach_handle(target, std::move(handle));
      },
      "Sends every call of a module through a Python callable.");
  module.def("has_program", [](py::handle target) {
    const std::shared_ptr<Handle> handle = find_handle(target.ptr());
    return handle != nullptr && handle->program != nullptr;
  });
  module.def("handle_count", &handle_count);
  module.def("drop_handles", &drop_handles);
  module.def("program_explain", [](py::handle target, const std::string& executor, const py::dict& parameters, const py::list& metas, const std::string& where) {
    const std::shared_ptr<Handle> handle = find_handle(target.ptr());
    FXF_CHECK(handle != nullptr && handle->program != nullptr, Value, "the module has no program");
    std::map<std::string, ir::Attr> values;
    for (auto item : parameters) values[py::cast<std::string>(item.first)] = to_attr(item.second, {}, nullptr);
    std::vector<ir::TensorMeta> exact;
    for (auto item : metas) exact.push_back(meta_of(item).value_or(ir::TensorMeta{}));
    for (const ConstantSource& source : metas.empty() ? std::vector<ConstantSource>{} : handle->constants) {
      exact.push_back(meta_of(constant_of(target.ptr(), source)).value_or(ir::TensorMeta{}));
    }
    const executor::ParsedOptions parsed = service().parse_options(executor, values);
    std::shared_ptr<Program> program = handle->program;
    py::gil_scoped_release released;
    return program->explain(parsed.options, exact, where);
  });
}

}  // namespace fxfuser::bindings
