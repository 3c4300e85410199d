#include "codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <mutex>

#include "partitioner/ir/error.h"

#ifdef FXFUSER_WITH_CUDA
#include <nvrtc.h>
#endif

namespace fxfuser::codegen {
namespace {

std::mutex& search_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::vector<std::string>& search_path() {
  static std::vector<std::string> folders;
  return folders;
}

#ifdef FXFUSER_WITH_CUDA

/// The functions of NVRTC that we call, found by name: the library is never linked.
struct Functions {
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  bool loaded = false;
  std::string why;  // what was tried, when not loaded
};

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

void* open_library(std::string& tried) {
  const auto attempt = [&](const std::string& path) -> void* {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      tried += fmt::format("\n  {}", reason != nullptr ? reason : path.c_str());
    }
    return handle;
  };
  // Already in the process (torch loads it): the same copy, so that its builtins match.
  for (const char* name : kNames)
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return handle;
  std::vector<std::string> folders;
  {
    const std::lock_guard lock(search_mutex());
    folders = search_path();
  }
  if (const char* given = std::getenv("FXFUSER_NVRTC"); given != nullptr && *given != '\0') {
    // A file, or a folder that holds it.
    const std::string path = given;
    if (path.find(".so") != std::string::npos) {
      if (void* handle = attempt(path)) return handle;
    } else {
      folders.insert(folders.begin(), path);
    }
  }
  for (const std::string& folder : folders)
    for (const char* name : kNames)
      if (void* handle = attempt(folder + "/" + name)) return handle;
  for (const char* name : kNames)
    if (void* handle = attempt(name)) return handle;
  return nullptr;
}

template <typename Function>
void resolve(void* handle, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) missing += fmt::format(" {}", name);
}

Functions load() {
  Functions f;
  void* handle = open_library(f.why);
  if (handle == nullptr) {
    f.why = "NVRTC was not found; tried:" + f.why;
    return f;
  }
  std::string missing;
  resolve(handle, "nvrtcVersion", f.version, missing);
  resolve(handle, "nvrtcGetErrorString", f.error_string, missing);
  resolve(handle, "nvrtcCreateProgram", f.create, missing);
  resolve(handle, "nvrtcDestroyProgram", f.destroy, missing);
  resolve(handle, "nvrtcCompileProgram", f.compile, missing);
  resolve(handle, "nvrtcGetProgramLogSize", f.log_size, missing);
  resolve(handle, "nvrtcGetProgramLog", f.log, missing);
  resolve(handle, "nvrtcGetCUBINSize", f.cubin_size, missing);
  resolve(handle, "nvrtcGetCUBIN", f.cubin, missing);
  resolve(handle, "nvrtcGetPTXSize", f.ptx_size, missing);
  resolve(handle, "nvrtcGetPTX", f.ptx, missing);
  f.loaded = missing.empty();
  f.why = f.loaded ? std::string() : "NVRTC lacks" + missing;
  return f;
}

/// Loaded once when it was found; looked for again while it was not (a search path may have come).
const Functions& functions() {
  static std::mutex mutex;
  static Functions cached;
  const std::lock_guard lock(mutex);
  if (!cached.loaded) cached = load();
  return cached;
}

void check(const Functions& f, nvrtcResult result, const char* what) {
  FXF_CHECK(result == NVRTC_SUCCESS, Runtime, "NVRTC: {} failed: {}", what, f.error_string(result));
}

constexpr int kFewSpills = 16;  // bytes a thread

/// Bytes that a thread of the kernel stores to local memory for want of registers, from what the assembler says of it; 0 where it says
/// nothing.
int spilled_bytes(const std::string& log) {
  static constexpr std::string_view kWords = " bytes spill stores";
  const std::size_t end = log.find(kWords);
  if (end == std::string::npos) return 0;
  const std::size_t begin = log.find_last_not_of("0123456789", end - 1) + 1;
  return begin < end ? std::stoi(log.substr(begin, end - begin)) : 0;
}

/// A program that goes away with its scope.
class Program {
 public:
  Program(const Functions& f, const std::string& source, const std::string& name) : f_(f) {
    check(f_, f_.create(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr), "creating a program");
  }
  ~Program() { f_.destroy(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return f_.compile(program_, static_cast<int>(pointers.size()), pointers.data());
  }
  std::string log() const {
    std::size_t size = 0;
    if (f_.log_size(program_, &size) != NVRTC_SUCCESS || size <= 1) return {};
    std::string text(size, '\0');
    if (f_.log(program_, text.data()) != NVRTC_SUCCESS) return {};
    text.resize(size - 1);  // the final zero
    return text;
  }
  std::string bytes(bool ptx) const {
    std::size_t size = 0;
    check(f_, ptx ? f_.ptx_size(program_, &size) : f_.cubin_size(program_, &size), "reading the size of the result");
    std::string result(size, '\0');
    check(f_, ptx ? f_.ptx(program_, result.data()) : f_.cubin(program_, result.data()), "reading the result");
    return result;
  }

 private:
  const Functions& f_;
  nvrtcProgram program_ = nullptr;
};

#endif

}  // namespace

void Nvrtc::set_search_path(std::vector<std::string> folders) {
  const std::lock_guard lock(search_mutex());
  search_path() = std::move(folders);
}

std::vector<std::string> Nvrtc::flags(int sm, bool eager_rounding) {
  std::vector<std::string> result{fmt::format("--gpu-architecture=sm_{}", sm), "-default-device", "--std=c++17", "--diag-suppress=177"};
  if (eager_rounding) result.emplace_back("-fmad=false");
  return result;
}

#ifdef FXFUSER_WITH_CUDA

bool Nvrtc::available(std::string* why) {
  const Functions& f = functions();
  if (!f.loaded && why != nullptr) *why = f.why;
  return f.loaded;
}

std::string Nvrtc::version() {
  const Functions& f = functions();
  int major = 0, minor = 0;
  if (!f.loaded || f.version(&major, &minor) != NVRTC_SUCCESS) return {};
  return fmt::format("{}.{}", major, minor);
}

Binary Nvrtc::compile(const std::string& name, std::string_view text, int sm, bool eager_rounding, bool ptx) {
  const Functions& f = functions();
  FXF_CHECK(f.loaded, Runtime, "{}", f.why);
  const auto start = std::chrono::steady_clock::now();
  std::string source(cuda_prelude());
  source += "\n#line 1 \"" + name + ".cu\"\n";  // messages count from the kernel's own first line
  source += text;
  std::vector<std::string> options = flags(sm, eager_rounding);
  if (ptx) options[0] = fmt::format("--gpu-architecture=compute_{}", sm);
  else options.emplace_back("--ptxas-options=-v");
  Binary binary;
  const auto attempt = [&] {
    Program program(f, source, name + ".cu");
    const nvrtcResult result = program.compile(options);
    binary.log = program.log();
    FXF_CHECK(result == NVRTC_SUCCESS, Runtime, "NVRTC refused kernel {} for sm_{} ({}):\n{}", name, sm, f.error_string(result),
              binary.log);
    binary.bytes = program.bytes(ptx);
  };
  attempt();
  // The schedule asked for more blocks an SM than the kernel has registers for: traffic to local memory costs more than they bring.
  if (spilled_bytes(binary.log) > kFewSpills) {
    options.emplace_back("-DFXF_FREE_REGISTERS");
    attempt();
  }
  binary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return binary;
}

#else

bool Nvrtc::available(std::string* why) {
  if (why != nullptr) *why = "this build has no CUDA: nvrtc.h was not found when it was configured";
  return false;
}

std::string Nvrtc::version() { return {}; }

Binary Nvrtc::compile(const std::string&, std::string_view, int, bool, bool) {
  throw_error(ErrorKind::Runtime, "this build has no CUDA: nvrtc.h was not found when it was configured");
}

#endif

}  // namespace fxfuser::codegen
