#pragma once
// Other programs, called with an argument vector and never a shell, and the files that they work on.

#include <string>
#include <vector>

namespace fxfuser::codegen {

/// A folder of its own, removed with what is in it. Throws Error(Runtime) when none can be made in TMPDIR or /tmp.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  /// The path of a file in it.
  std::string file(const std::string& name);

 private:
  std::string path_;
  std::vector<std::string> names_;
};

/// Runs a command with its output in a file; returns the exit status, 127 when it could not be started.
int run_command(const std::vector<std::string>& command, const std::string& output);

}  // namespace fxfuser::codegen
