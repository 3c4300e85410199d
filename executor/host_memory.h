#pragma once
// Memory of large CPU tensors: blocks that their tensors have left are kept for the next ones, so that a call doesn't pay a page
// fault for every 4 KiB that it writes. Bounded; a block that rests for a second goes back to the system. Only tensors that a
// plan allocates lie here: PyTorch's own allocator is not touched.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace fxfuser::executor {

/// Tensors below this many bytes come from PyTorch's allocator.
constexpr std::int64_t kLargeBytes = 1 << 20;

/// An uninitialised CPU tensor of `bytes` bytes of storage. When it dies its memory is kept if no more than `kept_bytes` are kept
/// then, older blocks going first. Throws what PyTorch's allocator throws when there is no memory.
at::Tensor allocate_large(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype, std::int64_t bytes, std::int64_t kept_bytes);

struct HostMemory {
  std::int64_t kept_bytes = 0;     // in blocks without a tensor
  std::uint64_t fresh = 0;         // blocks asked of the system
  std::uint64_t reused = 0;        // blocks that served again
};
HostMemory host_memory();
/// Gives what is kept back to the system.
void release_host_memory();

}  // namespace fxfuser::executor
