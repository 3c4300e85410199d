#pragma once
// CUDA text run on the CPU: the prelude with its machine file replaced by one that a caller brings (tests/emulator has one
// with fibers for threads and checks of every access), compiled by the host compiler.

#include <string>
#include <vector>

#include "codegen/kernel_source.h"

namespace fxfuser::codegen {

struct Emulation {
  std::string machine;             // text of the replacement of codegen/cuda/device/00_machine.cuh
  ArchInfo arch;                   // what kernels are planned for
  std::vector<std::string> flags;  // of the host compiler
};

/// Runs all blocks of a launch. Exported as "run_<entry>".
using EmulatedEntry = void (*)(const void* params, const unsigned* grid, const unsigned* block, unsigned cluster);

/// One translation unit with these kernels; the machine text defines FXF_EMULATED(entry), which follows each.
std::string emulated_unit(const Emulation& emulation, const std::vector<const KernelSource*>& sources);

}  // namespace fxfuser::codegen
