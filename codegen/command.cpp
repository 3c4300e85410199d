#include "codegen/command.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "partitioner/ir/error.h"

extern char** environ;

namespace fxfuser::codegen {

ScratchFolder::ScratchFolder() {
  const char* base = std::getenv("TMPDIR");
  for (const std::string& parent : {std::string(base != nullptr && *base != '\0' ? base : "/tmp"), std::string("/tmp")}) {
    path_ = parent + "/fxfuser-XXXXXX";
    if (mkdtemp(path_.data()) != nullptr) return;
  }
  throw_error(ErrorKind::Runtime, "no temporary folder can be made in TMPDIR or /tmp");
}

ScratchFolder::~ScratchFolder() {
  for (const std::string& name : names_) unlink((path_ + "/" + name).c_str());
  rmdir(path_.c_str());
}

std::string ScratchFolder::file(const std::string& name) {
  names_.push_back(name);
  return path_ + "/" + name;
}

int run_command(const std::vector<std::string>& command, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int started = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}

}  // namespace fxfuser::codegen
