#pragma once
// execute(gm, *args, executor=, executor_parameters=, **kwargs): the hit path from Python.

#include <pybind11/pybind11.h>

#include "bindings/call_options.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {

namespace py = pybind11;

struct Call {
  PyObject* module = nullptr;
  PyObject* const* args = nullptr;
  Py_ssize_t count = 0;
  PyObject* executor = nullptr;    // borrowed; null: the default
  PyObject* parameters = nullptr;  // borrowed; null: none
  OptionsPointer options;          // what both mean; null: not parsed yet
  py::object kwargs;               // the module's own keyword arguments; null when there are none
  bool read_anew = false;          // the module was imported again for this call
  bool from_compiler = false;      // the graph is a compiler's, not the caller's: that nothing of it fuses is no news
  py::object* given = nullptr;     // holds `args`, which the caller gave up: let go of once they are read
};

/// One more keyword argument of the module; false with a Python error set.
bool add_keyword(Call& call, PyObject* name, PyObject* value);
/// A new reference to what the module returns; null with a Python error set.
PyObject* run_call(const Call& call);

/// Sets the Python exception of an error's kind.
void set_python_error(const Error& error);

/// Runs what may throw; false with the Python error set when it did.
template <typename Work>
bool completes(Work&& work) {
  try {
    work();
    return true;
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const Error& error) {
    set_python_error(error);
  }
  return false;
}
/// Turns fxfuser::Error into the Python exception of its kind where pybind11 calls us.
void register_errors();
void bind_execute(py::module_& module);

}  // namespace fxfuser::bindings
