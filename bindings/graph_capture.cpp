#include "bindings/graph_capture.h"

#include "executor/interface/fxfuser.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

namespace py = pybind11;

class TorchGraph final : public CapturedGraph {
 public:
  explicit TorchGraph(py::object graph) : graph_(std::move(graph)), executable_(reinterpret_cast<void*>(py::cast<std::uintptr_t>(graph_.attr("raw_cuda_graph_exec")()))) {}

  ~TorchGraph() override {
    if (!Py_IsInitialized()) {  // the interpreter is gone: its objects went with it
      graph_.release();
      return;
    }
    py::gil_scoped_acquire gil;
    graph_ = py::object();
  }

  void* executable() const override { return executable_; }

 private:
  py::object graph_;
  void* executable_;
};

class TorchCapture final : public GraphCapture {
 public:
  std::unique_ptr<CapturedGraph> capture(int device, const std::function<void()>& body) override {
    py::gil_scoped_acquire gil;
    try {
      const py::cpp_function run([&body] {
        py::gil_scoped_release released;
        body();
      });
      return std::make_unique<TorchGraph>(py::module_::import("fxfuser.graph_capture").attr("capture")(device, run));
    } catch (const py::error_already_set& error) {
      throw Error(ErrorKind::Runtime, error.what());  // said while the lock is held
    }
  }
};

}  // namespace

void bind_graph_capture(py::module_& module) {
  module.def("use_graph_capture", [] { service().set_graph_capture(std::make_shared<TorchCapture>()); }, "The option cuda_graph captures through torch.cuda.");
}

}  // namespace fxfuser::bindings
