#include "bindings/host_callable.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

namespace fxfuser::bindings {
namespace {

c10::IValue to_ivalue(py::handle item) {
  if (item.is_none()) return {};
  if (THPVariable_Check(item.ptr())) return THPVariable_Unpack(item.ptr());
  if (PyBool_Check(item.ptr())) return item.ptr() == Py_True;
  if (PyLong_Check(item.ptr())) return py::cast<std::int64_t>(item);
  if (PyFloat_Check(item.ptr())) return py::cast<double>(item);
  return torch::jit::toIValue(item, c10::TypePtr(c10::PyObjectType::get()));
}

class PythonCallable final : public HostCallable {
 public:
  PythonCallable(py::object step, std::vector<std::size_t> widths) : step_(std::move(step)), widths_(std::move(widths)) {}

  ~PythonCallable() override {
    if (!Py_IsInitialized()) {  // the interpreter is gone: its objects went with it
      step_.release();
      return;
    }
    py::gil_scoped_acquire gil;
    step_ = py::object();
  }

  std::vector<c10::IValue> call(std::vector<c10::IValue> arguments) override {
    py::gil_scoped_acquire gil;
    py::list values;
    std::size_t at = 0;
    for (const std::size_t width : widths_) {
      if (width == 0) {
        values.append(torch::jit::toPyObject(std::move(arguments.at(at++))));
        continue;
      }
      py::tuple several(width);
      for (std::size_t k = 0; k < width; ++k) several[k] = torch::jit::toPyObject(std::move(arguments.at(at++)));
      values.append(several);
    }
    const py::list results = step_(values);
    std::vector<c10::IValue> out;
    for (auto item : results) out.push_back(to_ivalue(item));
    return out;
  }

 private:
  py::object step_;
  std::vector<std::size_t> widths_;
};

}  // namespace

std::shared_ptr<HostCallable> make_host_callable(py::object step, std::vector<std::size_t> widths) {
  return std::make_shared<PythonCallable>(std::move(step), std::move(widths));
}

}  // namespace fxfuser::bindings
