#pragma once
// The system C++ compiler as a code generator's back end: text -> shared object. Called with an argument vector, never a
// shell. CXX (split on blanks, "ccache g++" works), else g++, clang++, c++ on the PATH.

#include <string>
#include <string_view>
#include <vector>

#include "codegen/cuda/nvrtc.h"

namespace fxfuser::codegen {

struct HostCompiler {
  /// The compiler command in use; empty when there is none, with `why`.
  static std::vector<std::string> command(std::string* why = nullptr);
  static std::string version();            // first line of --version
  /// What was passed over: a CXX that does not run, and what is used instead; empty when there is nothing to tell.
  static std::string note();
  static std::string cpu_features();       // feature bits that -march=native may use, for cache keys
  static std::vector<std::string> flags(bool eager_rounding);
  /// Compiles prelude + several kernel texts into one shared object. Throws Error(Runtime) with the compiler's output.
  static Binary compile(const std::vector<std::string_view>& texts, bool eager_rounding);
  /// Compiles one translation unit into a shared object with the given flags.
  static Binary compile_unit(const std::string& unit, const std::vector<std::string>& flags);
  /// Forget the probed compiler (tests, a changed CXX).
  static void reset();
};

}  // namespace fxfuser::codegen
