#include "bindings/handle.h"

#include <algorithm>
#include <unordered_map>

#include "bindings/graph_builder.h"
#include "bindings/option_values.h"
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

/// Borrowed; each edit makes a new number or takes another one.
PyObject* node_count_of(PyObject* graph) {
  static PyObject* const name = interned("_len");
  PyObject** dict = graph == nullptr ? nullptr : _PyObject_GetDictPtr(graph);
  return dict != nullptr && *dict != nullptr ? PyDict_GetItem(*dict, name) : nullptr;
}

PyObject* forward_of(PyObject* module) {
  static PyObject* const name = interned("forward");
  return _PyType_Lookup(Py_TYPE(module), name);
}

/// (owner or None for the root's own attributes, key, ...) as the importer gives it.
ConstantSource source_of(const py::tuple& place) { return {place[0].is_none() ? py::object() : py::object(place[0]), place[1]}; }

}  // namespace

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
  handle.node_count = py::reinterpret_borrow<py::object>(node_count_of(handle.graph));
  handle.weak = py::weakref(module, py::cpp_function([key](py::handle) { handles().erase(key); }));
  auto fresh = std::make_shared<Handle>(std::move(handle));
  std::swap(handles()[key], fresh);  // the old one is destroyed after the map is whole again
}

bool nodes_changed(const Handle& handle) {
  PyObject* const now = node_count_of(handle.graph);
  if (now == handle.node_count.ptr()) return false;
  handle.node_count = py::reinterpret_borrow<py::object>(now);
  return true;
}

PyObject* constant_of(PyObject* module, const ConstantSource& source) {
  if (source.owner.ptr() != nullptr) return PyDict_GetItem(source.owner.ptr(), source.key.ptr());
  PyObject** dict = _PyObject_GetDictPtr(module);
  return dict != nullptr && *dict != nullptr ? PyDict_GetItem(*dict, source.key.ptr()) : nullptr;
}

bool owners_hold(PyObject* module, const Handle& handle) {
  for (const OwnerCheck& check : handle.owners) {
    if (constant_of(module, check.place) != check.expected.ptr()) return false;
  }
  return true;
}

std::size_t handle_count() { return handles().size(); }

void drop_handle(PyObject* module) {
  const auto found = handles().find(module);
  if (found == handles().end()) return;
  const std::shared_ptr<Handle> held = found->second;  // destroyed after the map is whole again
  handles().erase(found);
}

void drop_handles() {
  HandleMap dropped;
  std::swap(dropped, handles());
}

/// A fusion computes tensors: at least one node, and nothing but tensors out. The words are those that callers match.
std::string why_not_a_fusion(const ir::Graph& graph, const py::list& fixed) {
  if (graph.nodes.empty()) return "Graph must contain at least one call_function node to be one fusion";
  constexpr const char* kText = "output from codegen has to be tensor type: output {} of the graph is {}";
  std::size_t next = 0;
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    if (!fixed[i].is_none()) return fmt::format(kText, i, py::cast<std::string>(py::repr(py::cast<py::tuple>(fixed[i])[0])));
    const ir::Attr& output = graph.outputs.at(next++);
    if (!output.is_value() || graph.value(output.value()).kind == ir::ValueKind::Scalar) return fmt::format(kText, i, output.is_none() ? "None" : "no tensor");
  }
  return {};
}

/// A module's program, with the metas of these inputs and of its constants (none: the forecast).
std::pair<std::shared_ptr<Program>, std::vector<ir::TensorMeta>> program_with_metas(py::handle target, const py::list& inputs) {
  const std::shared_ptr<Handle> handle = find_handle(target.ptr());
  FXF_CHECK(handle != nullptr && handle->program != nullptr, Value, "the module has no program");
  std::vector<ir::TensorMeta> exact;
  for (auto item : inputs) exact.push_back(meta_of(item).value_or(ir::TensorMeta{}));
  for (const ConstantSource& source : inputs.empty() ? std::vector<ConstantSource>{} : handle->constants) {
    exact.push_back(meta_of(constant_of(target.ptr(), source)).value_or(ir::TensorMeta{}));
  }
  return {handle->program, std::move(exact)};
}

void bind_handles(py::module_& module) {
  module.def(
      "attach",
      [](py::object target, GraphBuilder& builder, std::size_t placeholders, bool flat, bool takes_sequence, const std::string& form, py::object unflatten,
         const py::list& owners, const py::list& constants, const py::list& fixed, const py::list& called, const py::list& baked) {
        Handle handle;
        ImportedGraph imported = builder.take();
        handle.not_a_fusion = why_not_a_fusion(imported.graph, fixed);
        handle.program = service().import(std::move(imported));
        handle.placeholders = placeholders;
        handle.flat = flat;
        handle.takes_sequence = takes_sequence;
        handle.form = form == "single" ? OutputForm::Single : form == "tuple" ? OutputForm::Tuple : form == "list" ? OutputForm::List : OutputForm::Tree;
        handle.unflatten = std::move(unflatten);
        for (auto item : owners) {
          const auto check = py::cast<py::tuple>(item);
          handle.owners.push_back({source_of(check), check[2]});
        }
        for (auto item : constants) handle.constants.push_back(source_of(py::cast<py::tuple>(item)));
        for (auto item : fixed) handle.fixed.push_back(item.is_none() ? py::object() : py::object(py::cast<py::tuple>(item)[0]));
        for (auto item : called) handle.called.push_back(py::reinterpret_borrow<py::object>(item));
        for (auto item : baked) handle.baked.push_back({py::cast<std::size_t>(item), py::object(), false});
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
    if (handle == nullptr || handle->program == nullptr || !owners_hold(target.ptr(), *handle)) return false;
    return std::all_of(handle->constants.begin(), handle->constants.end(), [&](const ConstantSource& source) { return constant_of(target.ptr(), source) != nullptr; });
  }, "Has a module a program that reads its constants where they are now?");
  module.def("drop_handle", [](py::handle target) { drop_handle(target.ptr()); }, "Forgets what is known of one module: the next call reads it anew.");
  module.def("handle_count", &handle_count);
  module.def("drop_handles", &drop_handles);
  module.def("program_explain", [](py::handle target, const std::string& executor, const py::dict& parameters, const py::list& metas, const std::string& where) {
    const auto [program, exact] = program_with_metas(target, metas);
    const executor::ParsedOptions parsed = parse_options(executor, option_values(parameters));
    py::gil_scoped_release released;
    return program->explain(parsed.options, exact, where);
  });
  module.def("program_warm", [](py::handle target, const std::string& executor, const py::dict& parameters, const py::list& metas, const std::string& arch, const std::string& pack) {
    const auto [program, exact] = program_with_metas(target, metas);
    const executor::ParsedOptions parsed = parse_options(executor, option_values(parameters));
    py::gil_scoped_release released;
    return program->warm(parsed.options, exact, arch, pack);
  });
}

}  // namespace fxfuser::bindings
