#include "codegen/host/host_compiler.h"

#include <chrono>
#include <cstdlib>
#include <mutex>

#include "codegen/command.h"
#include "codegen/file_io.h"
#include "partitioner/ir/error.h"

namespace fxfuser::codegen {
namespace {

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
    if (run_command(command, log) == 0) {
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
  const int status = run_command(arguments, log);
  Binary out;
  out.log = read_file(log);
  FXF_CHECK(status == 0, Runtime, "{} failed on a generated kernel (status {}):\n{}", arguments[0], status, out.log.substr(0, 4000));
  out.bytes = read_file(object);
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace fxfuser::codegen
