#pragma once
// The text of a kernel and everything needed to launch it. The text depends on the pattern only; what is concrete is in
// `ints` and `launch`. Both targets share one parameter block, 8-byte words in this order:
//   pointers: inputs (tensor ones, in fusion order), outputs, workspace (only where used)
//   ints:     sizes, strides, offsets, bounds as the emitter numbered them
//   scalars:  one word a scalar input (double or int64 by its dtype)
// CUDA: `extern "C" __global__ void <entry>(const __grid_constant__ Params p)`, host:
// `extern "C" void <entry>(const Params* p, int64 begin, int64 end)` over work items [begin, end).
//
// Pattern rules: a coefficient of 0 or 1 on an axis is written into the text, every other size, coefficient, offset and
// bound is an int of the block (an offset of 0 is written into the text). Equal numbers never share an int by chance: an
// int is shared only where it is the same role (the size of axis a).

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/arch.h"
#include "codegen/fusion.h"
#include "codegen/schedule.h"

namespace fxfuser::codegen {

struct LaunchConfig {
  std::string entry;
  std::array<std::uint32_t, 3> grid{1, 1, 1};  // CUDA
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t cluster = 1;
  std::uint32_t shared_bytes = 0;              // dynamic
  bool begins_early = false;                   // CUDA: when all blocks of the launch before have begun, whose end it awaits itself
  std::int64_t work_items = 0;                 // host: kernel covers [0, work_items)
  std::int64_t grain = 1;                      // host: smallest range for a thread
};

struct KernelSource {
  Target target = Target::Host;
  std::string name;                     // fxfuser_<kind>_<hash8>; the first entry
  std::string text;                     // without the prelude
  std::vector<std::uint32_t> pointer_inputs;  // fusion inputs that are pointers, in order
  std::vector<std::uint32_t> scalar_inputs;   // fusion inputs that are scalars, in order
  std::vector<std::int64_t> ints;
  std::vector<LaunchConfig> launches;   // run in this order on one stream (partials, then finish)
  std::int64_t workspace_bytes = 0;     // uninitialised
  std::int64_t bytes = 0;               // of all tensor inputs and outputs, each once, for the report
  int slots_per_element = 0;            // predicted issue slots, for the report
  bool eager_rounding = false;          // compile without contraction
};

/// Text and launch of a fusion under a schedule. (codegen/cuda/emit.cpp, codegen/host/emit_host.cpp)
KernelSource emit_cuda(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch);
KernelSource emit_host(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch);
inline KernelSource emit(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch) {
  return arch.target == Target::Cuda ? emit_cuda(fusion, schedule, arch) : emit_host(fusion, schedule, arch);
}

/// The prelude that every kernel of a target is compiled behind.
std::string_view cuda_prelude();
/// The CUDA prelude without its machine file, the one with intrinsics.
std::string_view cuda_library();
std::string_view host_prelude();

}  // namespace fxfuser::codegen
