#include "executor/interface/fxfuser.h"

#include <dlfcn.h>
#include <torch/version.h>

#include <cstdlib>
#include <cstring>
#include <mutex>

#include "executor/interface/entry.h"

namespace fxfuser {
namespace {

std::mutex load_mutex;
std::string explicit_path;
Service* loaded = nullptr;

/// The folder that this code was loaded from.
std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path(info.dli_fname);
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::vector<std::string> candidates() {
  std::vector<std::string> out;
  if (!explicit_path.empty()) out.push_back(explicit_path);
  if (const char* path = std::getenv("FXFUSER_LIBRARY"); path != nullptr && *path != '\0') out.emplace_back(path);
  const std::string folder = own_folder();
  if (!folder.empty()) out.push_back(folder + "/libfxfuser_codegen.so");
  return out;
}

/// The service of one library file; null with a reason.
Service* try_library(const std::string& path, std::string& why) {
  if (path.find('/') == std::string::npos) {
    why = "not a path with a folder (the current folder is never searched)";
    return nullptr;
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    why = text == nullptr ? "does not load" : text;
    return nullptr;
  }
  const auto entry = reinterpret_cast<decltype(&fxfuser_codegen_entry)>(dlsym(library, "fxfuser_codegen_entry"));
  if (entry == nullptr) {
    why = "is no fxfuser library (no fxfuser_codegen_entry)";
    return nullptr;
  }
  const fxfuser_entry* facts = entry();
  if (std::strcmp(facts->interface_version, FXFUSER_INTERFACE_VERSION) != 0) {
    why = std::string("has interface ") + facts->interface_version + ", this program has " + FXFUSER_INTERFACE_VERSION;
    return nullptr;
  }
  if (std::strcmp(facts->torch_version, TORCH_VERSION) != 0) {
    why = std::string("was built for torch ") + facts->torch_version + ", this program for " + TORCH_VERSION;
    return nullptr;
  }
  return facts->service();
}

}  // namespace

Service& service() {
  const std::lock_guard<std::mutex> lock(load_mutex);
  if (loaded != nullptr) return *loaded;
  std::string tried;
  for (const std::string& path : candidates()) {
    std::string why;
    loaded = try_library(path, why);
    if (loaded != nullptr) return *loaded;
    tried += "\n  " + path + ": " + why;
  }
  throw Error(ErrorKind::Runtime, "the code-generation library could not be loaded; tried:" + (tried.empty() ? " nothing" : tried));
}

void set_library_path(std::string path) {
  const std::lock_guard<std::mutex> lock(load_mutex);
  explicit_path = std::move(path);
}

}  // namespace fxfuser
