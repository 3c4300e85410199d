#include "bindings/option_values.h"

#include "bindings/attr_convert.h"
#include "executor/interface/fxfuser.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {

OptionValues option_values(py::handle parameters) {
  OptionValues values;
  const py::object resolved = py::module_::import("fxfuser.parameters").attr("resolve")(parameters);
  for (auto item : py::cast<py::dict>(resolved)) values[py::cast<std::string>(item.first)] = to_attr(item.second, {}, nullptr);
  return values;
}

executor::ParsedOptions parse_options(const std::string& executor, const OptionValues& values) {
  try {
    return service().parse_options(executor, values);
  } catch (const Error& error) {
    if (executor != "aten" || error.kind() != ErrorKind::Runtime) throw;
    executor::ParsedOptions parsed;
    parsed.options.mode = executor::Mode::Aten;
    return parsed;
  }
}

}  // namespace fxfuser::bindings
