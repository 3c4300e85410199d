#pragma once
// A loaded kernel: a shared object or a CUDA module with its entries. Shared by plans; unloaded with the last of them.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/kernel_source.h"

namespace fxfuser::executor {

/// A file image in this process: several kernels may come from one.
class LoadedImage {
 public:
  static std::shared_ptr<LoadedImage> host(const std::string& bytes);
  static std::shared_ptr<LoadedImage> cuda(std::string bytes);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  void* host_entry(const std::string& name) const;
  void* cuda_entry(const std::string& name, int device, unsigned shared_bytes, unsigned cluster);

 private:
  LoadedImage() = default;
  void* library_ = nullptr;   // host
  std::string bytes_;         // cuda: loaded once a device
  std::mutex mutex_;
  std::map<int, void*> modules_;
  std::map<std::pair<std::string, int>, void*> functions_;
};

/// Where a kernel came from, for reports.
struct KernelOrigin {
  double seconds = 0;   // its share of the compiler's run
  std::string folder;   // not compiled by this process: what it was loaded from
};

class CompiledKernel {
 public:
  CompiledKernel(codegen::Target target, std::string name, std::shared_ptr<LoadedImage> image, KernelOrigin origin)
      : target_(target), name_(std::move(name)), image_(std::move(image)), origin_(std::move(origin)) {}

  const std::string& name() const { return name_; }
  codegen::Target target() const { return target_; }
  const KernelOrigin& origin() const { return origin_; }
  /// Entry of a launch, ready to call; a CUDA kernel for device -1 is an emulated one.
  void* entry(const codegen::LaunchConfig& launch, int device) const;

 private:
  codegen::Target target_;
  std::string name_;
  std::shared_ptr<LoadedImage> image_;
  KernelOrigin origin_;
};

}  // namespace fxfuser::executor
