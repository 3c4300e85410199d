#pragma once
// What a scheduler may know of the machine. Fixed entries serve planning without a GPU and the tests; the executor fills one
// from the driver.

#include <cstdint>
#include <string>

namespace fxfuser::codegen {

enum class Target : std::uint8_t { Host, Cuda };

struct ArchInfo {
  Target target = Target::Host;
  std::string name = "host";
  int sm = 0;                        // 90 for sm_90
  int sm_count = 1;                  // host: number of threads
  int max_threads_per_sm = 2048;
  int registers_per_sm = 65536;
  std::int64_t shared_per_block = 0;  // opt-in bytes
  std::int64_t shared_per_sm = 0;
  std::int64_t l2_bytes = 0;
  int vector_bytes = 16;             // widest load
  std::int64_t bytes_in_flight = 49152;  // per SM, to hide the latency of memory
  int max_cluster = 1;

  /// Blocks that the device runs at once in clusters of a size, one on an SM: a cluster doesn't cross the border between groups of SMs.
  int cluster_blocks(int cluster) const;

  static ArchInfo h200();
  static ArchInfo generic(int sm);   // sm_75 .. sm_120 by family
  /// By the device's name where the part differs from its family, so that plans made without a device are those made with it.
  static ArchInfo of_device(const std::string& name, int sm);
  static ArchInfo toy();             // 4 SMs, 16 KiB shared memory: small tensors reach every tier and border
  static ArchInfo host(int threads);
};

}  // namespace fxfuser::codegen
