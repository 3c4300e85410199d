#include "codegen/host/emulation.h"

#include <fmt/format.h>

namespace fxfuser::codegen {

std::string emulated_unit(const Emulation& emulation, const std::vector<const KernelSource*>& sources) {
  std::string unit = emulation.machine + "\n" + std::string(cuda_library());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    unit += fmt::format("\nnamespace kernel{} {{\n{}\n", i, sources[i]->text);
    for (const LaunchConfig& launch : sources[i]->launches) unit += fmt::format("FXF_EMULATED({})\n", launch.entry);
    unit += "}\n";
  }
  return unit;
}

}  // namespace fxfuser::codegen
