#include "executor/interface/fxfuser.h"

#include <dlfcn.h>
#include <link.h>
#include <torch/version.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>

#include "executor/interface/entry.h"

namespace fxfuser {
namespace {

std::mutex load_mutex;
std::string explicit_path;
Service* loaded = nullptr;

/// A loaded file's absolute path; empty when the loader knows it by a relative one.
std::string path_of(const link_map& map) {
  std::string path = map.l_name;
  if (path.empty()) {  // the program itself
    std::error_code error;
    path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  }
  return path.starts_with('/') ? path : std::string();
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

/// The folders in which the loader looks for a file's libraries: its run path, LD_LIBRARY_PATH, the system's. Absolute ones only.
std::vector<std::string> loader_folders(void* handle) {
  Dl_serinfo size{};
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) != 0) return {};
  const auto bytes = std::make_unique<char[]>(size.dls_size);
  auto* const list = reinterpret_cast<Dl_serinfo*>(bytes.get());
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, list) != 0 || dlinfo(handle, RTLD_DI_SERINFO, list) != 0) return {};
  std::vector<std::string> out;
  for (unsigned i = 0; i < list->dls_cnt; ++i) {
    if (const char* folder = list->dls_serpath[i].dls_name; *folder == '/') out.emplace_back(folder);
  }
  return out;
}

/// Folders of the library, best first: beside this code, where the loader looks for this code's libraries, and the fxfuser
/// package beside the torch package in use.
std::vector<std::string> folders() {
  std::vector<std::string> out;
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&folders), &info, &extra, RTLD_DL_LINKMAP) != 0) {
    const link_map& here = *static_cast<const link_map*>(extra);
    if (const std::string path = path_of(here); !path.empty()) out.push_back(folder_of(path));
    if (void* handle = dlopen(*here.l_name == '\0' ? nullptr : here.l_name, RTLD_LAZY | RTLD_NOLOAD); handle != nullptr) {
      for (std::string& folder : loader_folders(handle)) out.push_back(std::move(folder));
      dlclose(handle);
    }
  }
  if (void* handle = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD); handle != nullptr) {
    link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) {
      if (const std::string path = path_of(*map); !path.empty()) out.push_back(folder_of(folder_of(folder_of(path))) + "/fxfuser");
    }
    dlclose(handle);
  }
  return out;
}

/// What is tried, in this order; the current folder is never searched.
std::vector<std::string> candidates() {
  std::vector<std::string> out;
  if (!explicit_path.empty()) out.push_back(explicit_path);
  if (const char* path = std::getenv("FXFUSER_LIBRARY"); path != nullptr && *path != '\0') out.emplace_back(path);
  for (const std::string& folder : folders()) out.push_back(folder + "/libfxfuser_codegen.so");
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
    if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
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
  if (std::strcmp(facts->abi, FXFUSER_ABI) != 0) {
    why = std::string("was built with ") + facts->abi + ", this program with " + FXFUSER_ABI;
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
