#pragma once
// `executor` and `executor_parameters` of a call, parsed once while they stay the same.

#include <pybind11/pybind11.h>

#include <memory>

#include "executor/options.h"

namespace fxfuser::bindings {

namespace py = pybind11;

using OptionsPointer = std::shared_ptr<const executor::Options>;

/// The options that these arguments mean (both borrowed; null: the default). Warns of unknown keys. Throws Error(Value) or
/// Error(Type) for what can't be used.
OptionsPointer options_of(PyObject* executor, PyObject* parameters);

/// While it lives, calls that this thread makes on behalf of the running one have its options.
class RunningOptions {
 public:
  explicit RunningOptions(const OptionsPointer& options);
  ~RunningOptions();
  RunningOptions(const RunningOptions&) = delete;
  RunningOptions& operator=(const RunningOptions&) = delete;

  /// The options of the call that runs on this thread; null where none does.
  static OptionsPointer current();

 private:
  const OptionsPointer* before_;
};

}  // namespace fxfuser::bindings
