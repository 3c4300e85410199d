#pragma once
// A plan captured as a CUDA graph: after two plain runs that saw the same addresses the third is captured, later ones replay.
//
// A returned tensor never changes because of a later call: results are copied out of the graph's own memory after each replay.
// An input that keeps its address is read where it lies (a replay at another address is no replay); one that moves is copied
// into a buffer of the graph. Replays on different streams wait for each other.

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/interface/fxfuser.h"
#include "executor/plan.h"

namespace fxfuser::executor {

class PlanGraph {
 public:
  struct Call {
    const Plan& plan;
    std::span<const c10::IValue> inputs;
    std::size_t constants_from = 0;  // inputs from here on are the module's own tensors: never copied
    const std::vector<SlotId>& input_slots;
    GraphCapture* capture = nullptr;  // null: the host has none
  };

  /// Runs the call by a replay and fills `outputs`; false when it must run plainly: the note says why.
  bool run(const Call& call, std::vector<c10::IValue>& outputs, RunCounters& counters);
  std::string note();
  ~PlanGraph();

 private:
  struct Input {
    const void* address = nullptr;  // read where it lies; null: a buffer, or no tensor
    at::Tensor buffer;
  };
  struct Captured {
    std::unique_ptr<CapturedGraph> graph;
    std::vector<Input> inputs;
    std::vector<at::Tensor> outputs;  // in the graph's own memory
    RunCounters counters;
    std::vector<std::string> names;
    c10::Event used{c10::DeviceType::CUDA};
    std::optional<c10::Stream> last;
  };

  bool addresses_hold(const Call& call);
  void note_addresses(const Call& call);
  void capture(const Call& call, c10::Device device);
  std::vector<Input> make_inputs(const Call& call) const;
  void replay(const Call& call, const c10::Stream& stream, std::vector<c10::IValue>& outputs, RunCounters& counters);
  void drop();

  std::mutex mutex_;
  std::vector<const void*> seen_;  // by input, of the last plain run
  std::vector<bool> moved_;        // by input
  int captures_ = 0;
  std::optional<c10::Device> device_;  // of all inputs, once known
  std::unique_ptr<Captured> captured_;
  bool refused_ = false;
  std::string note_ = "not captured yet: the first calls run plainly";
};

}  // namespace fxfuser::executor
