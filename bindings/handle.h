#pragma once
// What a GraphModule owns on our side: its program, the stamp that tells an edited module, and where its constants live. Held
// in a map keyed by the module's identity, dropped by a weak reference when the module dies: nothing of a dead module lives on.

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/interface/fxfuser.h"

namespace fxfuser::bindings {

namespace py = pybind11;

/// How the flat results become what the module returns.
enum class OutputForm : std::uint8_t { Single, Tuple, List, Tree };

/// Where a constant lies: owner[key], or an attribute of the root module itself (owner null: a reference to the root's own
/// dictionary would keep the module alive through its graph).
struct ConstantSource {
  py::object owner;
  py::object key;
};
/// The object there now (borrowed), null when it is gone.
PyObject* constant_of(PyObject* module, const ConstantSource& source);

/// What must still be the object that the import saw: a submodule on the way to a constant, what a step holds as it is.
struct OwnerCheck {
  ConstantSource place;
  py::object expected;
};

/// A number that tracing wrote into the graph as a constant: no node reads its placeholder.
struct BakedInput {
  std::size_t index = 0;
  py::object first;  // what the first call gave; null before it
  bool told = false;
};

struct Handle {
  std::shared_ptr<Program> program;  // null: every call takes the Python road (`slow`)
  py::object forward;                // the stamp: type(gm).forward ...
  PyObject* graph = nullptr;         // ... and gm.graph, by identity
  mutable py::object node_count;     // gm.graph._len when the graph was last seen to be what it was: one that is edited has another
  py::object weak;                   // keeps the weak reference alive
  std::size_t placeholders = 0;
  std::string not_a_fusion;          // why the graph can't be one fusion whatever its nodes are; empty when it can
  bool flat = true;                  // arguments are the placeholders as they are
  bool takes_sequence = false;       // the one placeholder may be a list: execute(gm, [a]) means gm([a])
  OutputForm form = OutputForm::Single;
  py::object unflatten;              // Tree: callable on a list of leaves
  std::vector<OwnerCheck> owners;
  std::vector<ConstantSource> constants;
  std::vector<py::object> fixed;     // by output: the object that is returned as it is; null: the program's next result
  std::vector<py::object> called;    // submodules that the graph calls: their hooks count
  mutable std::vector<BakedInput> baked;  // guarded by the GIL
  py::object slow;                   // callable(gm, args, kwargs, executor, parameters)
};

/// The handle of a module whose stamp still holds; null when there is none.
std::shared_ptr<Handle> find_handle(PyObject* module);
/// Has the graph more or fewer nodes than when it was last looked at? Changes inside nodes are not seen: nothing tells them for free.
bool nodes_changed(const Handle& handle);
/// Replaces the module's handle.
void attach_handle(py::handle module, Handle&& handle);
/// Are the submodules and objects that the import saw still where they were?
bool owners_hold(PyObject* module, const Handle& handle);
std::size_t handle_count();
void drop_handle(PyObject* module);
void drop_handles();

void bind_handles(py::module_& module);

}  // namespace fxfuser::bindings
