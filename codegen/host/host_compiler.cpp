#include "codegen/host/host_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <mutex>

#include "codegen/file_io.h"
#include "partitioner/ir/error.h"

extern char** environ;

namespace fxfuser::codegen {
namespace {

/// A folder of its own, removed with what is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    const char* base = std::getenv("TMPDIR");
    for (const std::string& parent : {std::string(base != nullptr && *base != '\0' ? base : "/tmp"), std::string("/tmp")}) {
      path_ = parent + "/fxfuser-XXXXXX";
      if (mkdtemp(path_.data()) != nullptr) return;
    }
    throw_error(ErrorKind::Runtime, "no temporary folder can be made in TMPDIR or /tmp");
  }
  ~ScratchFolder() {
    for (const std::string& name : names_) unlink((path_ + "/" + name).c_str());
    rmdir(path_.c_str());
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const std::string& name) {
    names_.push_back(name);
    return path_ + "/" + name;
  }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

/// Runs a command with its output in a file; returns the exit status, 127 when it could not be started.
int run(const std::vector<std::string>& command, const std::string& output) {
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

struct Probe {
  std::vector<std::string> command;
  std::string version;
  std::string why;   // no command: what was tried
  std::string note;  // a command, but not the one that CXX names
};

Probe probe_compiler() {
  Probe out;
  std::vector<std::vector<std::string>> candidates;
  const char* given = std::getenv("CXX");
  if (given != nullptr && *given != '\0') candidates.push_back(split_words(given, " \t\n"));
  for (const char* name : {"g++", "clang++", "c++"}) candidates.push_back({name});
  ScratchFolder folder;
  const std::string log = folder.file("version");
  for (const auto& candidate : candidates) {
    std::vector<std::string> command = candidate;
    command.emplace_back("--version");
    if (run(command, log) == 0) {
      const std::string text = read_file(log);
      out.command = candidate;
      out.version = text.substr(0, text.find('\n'));
      if (!out.why.empty() && given != nullptr && *given != '\0') out.note = fmt::format("CXX is '{}', which does not run: {} is used instead; set CXX to a compiler, or unset it", given, candidate[0]);
      return out;
    }
    out.why += (out.why.empty() ? "no C++ compiler answers: tried " : ", ") + candidate[0];
  }
  return out;
}

std::mutex probe_mutex;
std::optional<Probe> probed;

Probe probe() {
  const std::lock_guard<std::mutex> lock(probe_mutex);
  if (!probed) probed = probe_compiler();
  return *probed;
}

}  // namespace

std::vector<std::string> HostCompiler::command(std::string* why) {
  Probe found = probe();
  if (why != nullptr) *why = found.why;
  return found.command;
}

std::string HostCompiler::version() { return probe().version; }

std::string HostCompiler::note() { return probe().note; }

void HostCompiler::reset() {
  const std::lock_guard<std::mutex> lock(probe_mutex);
  probed.reset();
}

std::string HostCompiler::cpu_features() {
  std::string text;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define FXF_FEATURE(name) \
  if (__builtin_cpu_supports(name)) text += std::string(text.empty() ? "" : " ") + (name)
  FXF_FEATURE("sse4.2");
  FXF_FEATURE("avx");
  FXF_FEATURE("avx2");
  FXF_FEATURE("fma");
  FXF_FEATURE("bmi2");
  FXF_FEATURE("avx512f");
  FXF_FEATURE("avx512bw");
  FXF_FEATURE("avx512dq");
  FXF_FEATURE("avx512vl");
  FXF_FEATURE("avx512vbmi");
  FXF_FEATURE("avx512vnni");
  FXF_FEATURE("avx512bf16");
  // The model tells the rest that native code may use.
  const std::string info = read_file("/proc/cpuinfo");
  for (const char* key : {"cpu family", "model\t", "stepping", "flags"}) {
    const std::size_t at = info.find(key);
    if (at != std::string::npos) text += "|" + info.substr(at, info.find('\n', at) - at);
  }
#undef FXF_FEATURE
#endif
  return text;
}

std::vector<std::string> HostCompiler::flags(bool eager_rounding) {
  return {"-x",      "c++",        "-std=c++17", "-O3",          "-march=native",      "-mprefer-vector-width=512", "-fopenmp-simd", "-fno-math-errno",
          "-fno-trapping-math", eager_rounding ? "-ffp-contract=off" : "-ffp-contract=fast", "-fno-exceptions", "-fno-rtti", "-fPIC", "-shared", "-w"};
}

Binary HostCompiler::compile(const std::vector<std::string_view>& texts, bool eager_rounding) {
  std::string unit(host_prelude());
  // Each kernel's Params lives in a namespace of its own; extern "C" names stay as they are.
  for (std::size_t i = 0; i < texts.size(); ++i) unit += fmt::format("\nnamespace kernel{} {{\n{}\n}}\n", i, texts[i]);
  return compile_unit(unit, flags(eager_rounding));
}

Binary HostCompiler::compile_unit(const std::string& unit, const std::vector<std::string>& flags) {
  const auto start = std::chrono::steady_clock::now();
  std::string why;
  std::vector<std::string> arguments = command(&why);
  FXF_CHECK(!arguments.empty(), Runtime, "{}", why);
  ScratchFolder folder;
  const std::string source = folder.file("kernels.cpp"), object = folder.file("kernels.so"), log = folder.file("log");
  FXF_CHECK(write_file(source, unit), Runtime, "{} can't be written", source);
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"-o", object, source, "-lm"});
  const int status = run(arguments, log);
  Binary out;
  out.log = read_file(log);
  FXF_CHECK(status == 0, Runtime, "{} failed on a generated kernel (status {}):\n{}", arguments[0], status, out.log.substr(0, 4000));
  out.bytes = read_file(object);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace fxfuser::codegen
