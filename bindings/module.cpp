// fxfuser._C: names only; what they do is in the unit that each line calls.
#include <pybind11/pybind11.h>

#include "bindings/bind_frontend.h"
#include "bindings/bind_service.h"
#include "bindings/compiled_graph.h"
#include "bindings/execute.h"
#include "bindings/graph_builder.h"
#include "bindings/graph_capture.h"
#include "bindings/handle.h"
#include "bindings/log.h"
#include "bindings/overrides.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "fxfuser's native part";
  fxfuser::bindings::register_errors();
  fxfuser::bindings::bind_execute(module);
  fxfuser::bindings::bind_compiled_graph(module);
  fxfuser::bindings::bind_graph_builder(module);
  fxfuser::bindings::bind_handles(module);
  fxfuser::bindings::bind_overrides(module);
  fxfuser::bindings::bind_service(module);
  fxfuser::bindings::bind_graph_capture(module);
  fxfuser::bindings::bind_frontend(module);
  fxfuser::bindings::bind_log(module);
}
