// The machine under a generated CUDA kernel, on the CPU: replaces codegen/cuda/device/00_machine.cuh. One fiber a thread.
// What it checks, beside what the compiler's sanitizers do: every element is written once a launch, packs are aligned, shared
// memory is written before it is read and never by two threads between barriers (nor read by one while another writes),
// barriers and shuffles are reached by all that they wait for. Each launch runs in three orders of the threads. The blocks of a
// cluster run at once, and meet at their own barrier only.

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define FXF_EMU_ASAN 1
#endif

namespace fxf_emu {

[[noreturn]] inline void fail(const char* what, long long a = 0, long long b = 0) {
  std::fprintf(stderr, "EMULATOR: %s (%lld, %lld)\n", what, a, b);
  std::fflush(stderr);
  std::abort();
}

extern "C" void fxf_emu_switch(void** save, void* load);
asm(R"(
  .text
  .local fxf_emu_switch
  .type fxf_emu_switch, @function
fxf_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size fxf_emu_switch, .-fxf_emu_switch
)");

constexpr std::size_t kStack = 256 * 1024;
constexpr int kPeers = 8;  // of a cluster
enum class State : unsigned char { Ready, AtBarrier, AtShuffle, Done };

struct Fiber {
  void* stack_pointer = nullptr;
  char* stack = nullptr;
  State state = State::Done;
  unsigned arrived = 0, awaited = 0;  // barriers: what came before an arrival is seen after the wait of the same number
};

struct Machine {
  std::vector<Fiber> fibers;
  void* scheduler = nullptr;
  int current = 0;
  unsigned block = 0, threads = 0, peers = 1;  // the first block of those that run; threads of one; blocks
  unsigned serial = 0;                         // of the block, over all launches
  std::vector<unsigned> words[2];          // of shuffles, by parity
  std::vector<unsigned char> parity;       // of each thread's next shuffle
  void (*body)(const void*) = nullptr;
  const void* params = nullptr;
  struct Write {
    std::uintptr_t at;
    unsigned size;
  };
  std::vector<Write> writes;
  struct Fetch {
    char* to;
    const char* from;
    std::size_t bytes;
    int commit;
  };
  std::vector<std::vector<Fetch>> fetches;  // of each thread, that have not been waited for
  std::vector<int> commits;
#ifdef FXF_EMU_ASAN
  const void* scheduler_bottom = nullptr;
  std::size_t scheduler_size = 0;
#endif
};
static Machine machine;

inline void to_scheduler(bool last) {
  Fiber& fiber = machine.fibers[machine.current];
#ifdef FXF_EMU_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(last ? nullptr : &fake, machine.scheduler_bottom, machine.scheduler_size);
#endif
  fxf_emu_switch(&fiber.stack_pointer, machine.scheduler);
#ifdef FXF_EMU_ASAN
  __sanitizer_finish_switch_fiber(fake, &machine.scheduler_bottom, &machine.scheduler_size);
#endif
  (void)last;
}

inline void fiber_main() {
#ifdef FXF_EMU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &machine.scheduler_bottom, &machine.scheduler_size);
#endif
  machine.body(machine.params);
  machine.fibers[machine.current].state = State::Done;
  to_scheduler(true);
}

inline void start(Fiber& fiber) {
  if (fiber.stack == nullptr) {
    fiber.stack = static_cast<char*>(mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (fiber.stack == MAP_FAILED) fail("no memory for a stack");
  }
  auto* top = reinterpret_cast<std::uint64_t*>(fiber.stack + kStack - 64);
  *--top = 0;                                          // a return address that nobody takes: keeps the stack aligned
  *--top = reinterpret_cast<std::uint64_t>(&fiber_main);
  for (int saved = 0; saved < 6; ++saved) *--top = 0;
  fiber.stack_pointer = top;
  fiber.state = State::Ready;
  fiber.arrived = fiber.awaited = 0;
}

inline void resume(int thread) {
  machine.current = thread;
  Fiber& fiber = machine.fibers[thread];
#ifdef FXF_EMU_ASAN
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, fiber.stack, kStack);
#endif
  fxf_emu_switch(&machine.scheduler, fiber.stack_pointer);
#ifdef FXF_EMU_ASAN
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

inline void wait(State state) {
  machine.fibers[machine.current].state = state;
  to_scheduler(false);
}

}  // namespace fxf_emu
