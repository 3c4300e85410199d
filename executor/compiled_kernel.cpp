#include "executor/compiled_kernel.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "executor/driver_api.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {

namespace {

/// A path of an open file that no earlier dlopen has seen: the loader takes equal names for the same library, and file numbers
/// come again. The count is spelled in redundant path components.
std::string fresh_path(int file) {
  static std::atomic<std::uint32_t> count{0};
  std::string path = "/proc/self/fd";
  for (std::uint32_t bits = ++count; bits != 0; bits >>= 1) path += (bits & 1) != 0 ? "/." : "/";
  return fmt::format("{}/{}", path, file);
}

}  // namespace

std::shared_ptr<LoadedImage> LoadedImage::host(const std::string& bytes) {
  // The bytes that were checked are the bytes that are loaded: they never pass through a path that others could write.
  const int file = memfd_create("fxfuser-kernel", MFD_CLOEXEC);
  FXF_CHECK(file >= 0, Runtime, "memfd_create failed");
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + written, bytes.size() - written);
    if (count <= 0) {
      close(file);
      throw_error(ErrorKind::Runtime, "a kernel could not be written to memory");
    }
    written += static_cast<std::size_t>(count);
  }
  std::shared_ptr<LoadedImage> image(new LoadedImage());
  image->library_ = dlopen(fresh_path(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* why = image->library_ == nullptr ? dlerror() : nullptr;
  close(file);
  FXF_CHECK(image->library_ != nullptr, Runtime, "a compiled kernel does not load: {}", why == nullptr ? "unknown" : why);
  return image;
}

std::shared_ptr<LoadedImage> LoadedImage::cuda(std::string bytes) {
  std::shared_ptr<LoadedImage> image(new LoadedImage());
  image->bytes_ = std::move(bytes);
  return image;
}

LoadedImage::~LoadedImage() {
  if (library_ != nullptr) dlclose(library_);
  // CUDA modules stay: at process exit the driver may be gone, and a launch may still be in flight.
}

void* LoadedImage::host_entry(const std::string& name) const {
  void* entry = dlsym(library_, name.c_str());
  FXF_CHECK(entry != nullptr, Runtime, "a compiled kernel lacks {}", name);
  return entry;
}

void* LoadedImage::cuda_entry(const std::string& name, int device, unsigned shared_bytes, unsigned cluster) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Driver::use_device(device);
  void*& module = modules_[device];
  if (module == nullptr) module = Driver::load(bytes_);
  void*& function = functions_[{name, device}];
  // Asked again with more shared memory the limit is raised.
  if (function == nullptr || shared_bytes > 48 * 1024) function = Driver::function(module, name, shared_bytes, cluster);
  return function;
}

void* CompiledKernel::entry(const codegen::LaunchConfig& launch, int device) const {
  if (target_ == codegen::Target::Host) return image_->host_entry(launch.entry);
  if (device < 0) return image_->host_entry("run_" + launch.entry);  // emulated
  return image_->cuda_entry(launch.entry, device, launch.shared_bytes, launch.cluster);
}

}  // namespace fxfuser::executor
