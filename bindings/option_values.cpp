#include "bindings/option_values.h"

#include "bindings/attr_convert.h"

namespace fxfuser::bindings {

OptionValues option_values(py::handle parameters) {
  OptionValues values;
  const py::object resolved = py::module_::import("fxfuser.parameters").attr("resolve")(parameters);
  for (auto item : py::cast<py::dict>(resolved)) values[py::cast<std::string>(item.first)] = to_attr(item.second, {}, nullptr);
  return values;
}

}  // namespace fxfuser::bindings
