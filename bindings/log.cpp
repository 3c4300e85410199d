#include "bindings/log.h"

#include <array>

#include "executor/interface/fxfuser.h"

namespace py = pybind11;

namespace fxfuser::bindings {
namespace {

/// The loggers fxfuser.compile, fxfuser.cache and fxfuser.guard.
class PythonLog final : public LogSink {
 public:
  explicit PythonLog(const py::list& loggers) {
    for (std::size_t i = 0; i < loggers_.size(); ++i) loggers_[i] = new py::object(loggers[i]);  // never destroyed: Python may be gone by then
  }

  bool wants(LogTopic topic, LogLevel level) override {
    if (Py_IsInitialized() == 0) return false;
    const py::gil_scoped_acquire gil;
    try {
      return py::cast<bool>(logger(topic).attr("isEnabledFor")(number(level)));
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("fxfuser's log");
      return false;
    }
  }

  void write(LogTopic topic, LogLevel level, const std::string& line) noexcept override {
    if (!wants(topic, level)) return;
    const py::gil_scoped_acquire gil;
    try {
      logger(topic).attr("log")(number(level), "%s", line);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("fxfuser's log");
    }
  }

 private:
  static int number(LogLevel level) { return level == LogLevel::Warning ? 30 : 20; }  // logging.WARNING, logging.INFO
  const py::object& logger(LogTopic topic) const { return *loggers_[static_cast<std::size_t>(topic)]; }

  std::array<py::object*, 3> loggers_;
};

}  // namespace

void bind_log(py::module_& module) {
  module.def("use_loggers", [](const py::list& loggers) { service().set_log(std::make_shared<PythonLog>(loggers)); }, "Loggers of compiles, cache events and plan misses, in this order.");
}

}  // namespace fxfuser::bindings
