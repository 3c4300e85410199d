#pragma once
// What a plan is made of: flat steps over the slots of a call's own frame.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "codegen/kernel_source.h"
#include "executor/aten_call.h"
#include "executor/compiled_kernel.h"
#include "executor/interface/fxfuser.h"

namespace fxfuser::executor {

using SlotId = std::uint32_t;  // ids of the graph's values first, then those of groups' inner values

/// Where in a block that the call plans once something lies (plan_memory.h).
struct Place {
  SlotId block = 0;           // its slot
  std::int64_t offset = 0;    // in bytes
  std::int64_t bytes = 0;     // of the block; 0: not in one
};

struct TensorOutput {
  SlotId slot = 0;
  ir::TensorMeta meta;
  c10::ScalarType dtype = c10::ScalarType::Float;  // the meta's, as the allocator takes them
  c10::Device device{c10::DeviceType::CPU};
  std::int64_t large_bytes = 0;  // of storage, where it comes from host_memory.h
  Place place = {};
};

/// One generated kernel (one or two launches).
struct LaunchStep {
  std::shared_ptr<CompiledKernel> kernel;
  codegen::Target target = codegen::Target::Host;
  int device = -1;
  std::vector<SlotId> pointers;            // tensor inputs in parameter order
  struct Expected {
    SlotId slot = 0;
    ir::TensorMeta meta;
  };
  std::vector<Expected> expected;          // of those that come from an ATen step: their metas may differ at the next call
  std::int64_t input_bytes = 0;            // elements of the pointers by their size
  std::vector<SlotId> scalars;             // numbers and 0-dim CPU tensors
  std::vector<ir::DType> scalar_types;
  std::vector<TensorOutput> outputs;
  std::vector<std::int64_t> ints;
  std::vector<codegen::LaunchConfig> launches;
  std::vector<void*> entries;
  std::int64_t workspace_bytes = 0;
  Place workspace_place;
  std::int64_t kept_bytes = 0;             // how much of large CPU outputs is kept once they died; 0: none comes from host_memory.h
  // What the `dump` option asks for at each launch (dump_launch.h); 0: nothing.
  std::uint8_t dump = 0;
  int number = 0;  // of the kernel, in the order of first use; only where `dump` is set
};

struct AtenStep {
  AtenCall call;
};

/// A view of another slot, by its geometry, or the very tensor that it holds.
struct ViewStep {
  SlotId source = 0;
  SlotId target = 0;
  ir::Sizes sizes, strides;
  std::int64_t offset = 0;  // elements, from the source's own
  bool same = false;        // no view: what eager returns is the source itself
};

/// Host arithmetic on numbers and sizes.
struct ScalarStep {
  std::string target;
  std::vector<ir::Attr> args;
  SlotId output = 0;
};

struct CallableStep {
  std::shared_ptr<HostCallable> callable;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
};

/// Copies values into the storages of inputs.
struct WriteBackStep {
  std::vector<SlotId> targets;
  std::vector<SlotId> sources;  // one a target
  std::uint32_t versions = 1;   // how often each target's version counter rises
};

struct Step {
  std::variant<LaunchStep, AtenStep, ViewStep, ScalarStep, CallableStep, WriteBackStep> what;
  static constexpr std::uint32_t kAfterAll = 0xffffffffu;
  std::uint32_t unit = 0;         // which unit of the lowered graph it belongs to
  std::uint32_t origin = 0;       // the first node of the original graph that it computes
  std::string name;               // for profiler ranges
  std::vector<SlotId> free_after;
  std::vector<SlotId> inputs_after;  // inputs that no later step reads: freed when the caller gave them up
};

}  // namespace fxfuser::executor
