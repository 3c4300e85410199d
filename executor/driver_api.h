#pragma once
// The CUDA driver behind a lazily loaded table of functions: one binary serves machines with and without a GPU.

#include <cstddef>
#include <cstdint>
#include <string>

namespace fxfuser::executor {

/// Opaque driver handles, so that this header needs no cuda.h.
using DriverModule = void*;
using DriverFunction = void*;
using DriverStream = void*;
using DriverGraph = void*;  // executable

struct DriverLaunch {
  unsigned grid[3];
  unsigned block[3];
  unsigned cluster;
  unsigned shared_bytes;
  bool begins_early;  // may begin while the launch before it on the stream runs (programmatic dependent launch, sm_90)
};

struct DeviceFacts {
  int sm = 0;
  int sm_count = 0;
  int max_threads_per_sm = 0;
  int registers_per_sm = 0;
  std::int64_t shared_per_block = 0;
  std::int64_t shared_per_sm = 0;
  std::int64_t l2_bytes = 0;
  std::string name;
};

class Driver {
 public:
  /// True when the driver loads and has a device; otherwise `why` says what was tried.
  static bool available(std::string* why = nullptr);
  static DeviceFacts facts(int device);
  /// The context that PyTorch uses on a device becomes current on this thread. Throws Error(Runtime).
  static void use_device(int device);
  static DriverModule load(const std::string& image);
  static void unload(DriverModule module);
  static DriverFunction function(DriverModule module, const std::string& name, unsigned shared_bytes, unsigned cluster);
  /// `params`: the one by-value parameter of the kernel.
  static void launch(DriverFunction function, const DriverLaunch& config, DriverStream stream, void* params);
  static void launch_graph(DriverGraph graph, DriverStream stream);
  /// True while a capture takes what is enqueued on the stream, or may not be disturbed by it.
  static bool is_capturing(DriverStream stream);
};

}  // namespace fxfuser::executor
