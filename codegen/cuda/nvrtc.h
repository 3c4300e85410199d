#pragma once
// NVRTC behind a lazily loaded table of functions: text -> cubin, no driver and no GPU needed. The library is looked for as
// FXFUSER_NVRTC says, then the packages that torch depends on, then the system's.

#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_source.h"

namespace fxfuser::codegen {

struct Binary {
  std::string bytes;  // cubin (CUDA) or shared object (host)
  std::string log;
  double seconds = 0;
};

struct Nvrtc {
  /// True when the library loads; otherwise `why` says what was tried.
  static bool available(std::string* why = nullptr);
  static std::string version();   // "13.0"
  /// Where to look first: folders that hold libnvrtc.so.*; set by bindings before first use.
  static void set_search_path(std::vector<std::string> folders);
  /// Compiles prelude + text for sm_<sm> (or to PTX when `ptx`). Throws Error(Runtime) with the compiler's log.
  static Binary compile(const std::string& name, std::string_view text, int sm, bool eager_rounding, bool ptx = false);
  /// The flags, for cache keys.
  static std::vector<std::string> flags(int sm, bool eager_rounding);
};

}  // namespace fxfuser::codegen
