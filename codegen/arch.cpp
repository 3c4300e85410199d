#include "codegen/arch.h"

#include <fmt/format.h>

#include <algorithm>

namespace fxfuser::codegen {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

/// What differs between the families; the part of each that is sold most, where parts differ.
struct Family {
  int sm;
  int sm_count;
  int max_threads_per_sm;
  std::int64_t shared_per_block, shared_per_sm;
  std::int64_t l2_bytes;
  int vector_bytes;
  std::int64_t bytes_in_flight;
  int max_cluster;
};

constexpr Family kFamilies[] = {
    {75, 40, 1024, 64 * kKiB, 64 * kKiB, 4 * kMiB, 16, 12 * kKiB, 1},
    {80, 108, 2048, 163 * kKiB, 164 * kKiB, 40 * kMiB, 16, 16 * kKiB, 1},
    {86, 84, 1536, 99 * kKiB, 100 * kKiB, 6 * kMiB, 16, 12 * kKiB, 1},
    {89, 128, 1536, 99 * kKiB, 100 * kKiB, 72 * kMiB, 16, 12 * kKiB, 1},
    {90, 132, 2048, 227 * kKiB, 228 * kKiB, 50 * kMiB, 16, 32 * kKiB, 8},
    {100, 148, 2048, 227 * kKiB, 228 * kKiB, 126 * kMiB, 32, 64 * kKiB, 8},
    {120, 170, 1536, 99 * kKiB, 100 * kKiB, 96 * kMiB, 16, 16 * kKiB, 8},
};

}  // namespace

int ArchInfo::cluster_blocks(int cluster) const {
  // Measured on an H200 (132 SMs): 66 clusters of 2 blocks, 30 of 4, 15 of 8, 7 of 16.
  const int usable = cluster <= 2 ? sm_count : sm_count * 10 / 11;
  return std::max(usable / cluster, 1) * cluster;
}

ArchInfo ArchInfo::h200() {
  ArchInfo arch = generic(90);
  arch.name = "h200";
  arch.l2_bytes = 60 * kMiB;
  arch.bytes_in_flight = 48 * kKiB;
  arch.max_cluster = 16;  // sizes above 8 need the non-portable attribute
  return arch;
}

ArchInfo ArchInfo::generic(int sm) {
  // The newest family that is not newer than the device: its limits hold there too.
  const Family* family = &kFamilies[0];
  for (const Family& candidate : kFamilies)
    if (candidate.sm <= sm) family = &candidate;
  ArchInfo arch;
  arch.target = Target::Cuda;
  arch.name = fmt::format("sm_{}", sm);
  arch.sm = sm;
  arch.sm_count = family->sm_count;
  arch.max_threads_per_sm = family->max_threads_per_sm;
  arch.shared_per_block = family->shared_per_block;
  arch.shared_per_sm = family->shared_per_sm;
  arch.l2_bytes = family->l2_bytes;
  arch.vector_bytes = family->vector_bytes;
  arch.bytes_in_flight = family->bytes_in_flight;
  arch.max_cluster = family->max_cluster;
  return arch;
}

ArchInfo ArchInfo::of_device(const std::string& name, int sm) { return sm == 90 && name.find("H200") != std::string::npos ? h200() : generic(sm); }

ArchInfo ArchInfo::toy() {
  ArchInfo arch;
  arch.target = Target::Cuda;
  arch.name = "toy";
  arch.sm = 90;
  arch.sm_count = 4;
  arch.max_threads_per_sm = 128;
  arch.registers_per_sm = 2048;
  arch.shared_per_block = 16 * kKiB;
  arch.shared_per_sm = 16 * kKiB;
  arch.l2_bytes = 64 * kKiB;
  arch.vector_bytes = 16;
  arch.bytes_in_flight = 1 * kKiB;
  arch.max_cluster = 4;
  return arch;
}

ArchInfo ArchInfo::host(int threads) {
  ArchInfo arch;
  arch.target = Target::Host;
  arch.name = "host";
  arch.sm_count = std::max(threads, 1);
  arch.max_threads_per_sm = 1;
  arch.registers_per_sm = 0;
  arch.l2_bytes = 1 * kMiB;
  arch.vector_bytes = 64;  // an upper bound; the compiler picks what the machine has
  arch.bytes_in_flight = 0;
  return arch;
}

}  // namespace fxfuser::codegen
