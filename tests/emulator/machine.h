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

// ---- fibers -------------------------------------------------------------------------------------------------------------
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
  int barrier_or = 0, barrier_or_result = 0;
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

// ---- a launch -----------------------------------------------------------------------------------------------------------
enum class Order { Up, Down, Mixed };

inline bool release() {
  const int threads = static_cast<int>(machine.threads * machine.peers);
  bool any = false, waiting = false, all = true;
  for (int first = 0; first < threads; first += 32) {  // clusters are of whole warps
    int at_shuffle = 0, lanes = std::min(32, threads - first);
    for (int t = first; t < first + lanes; ++t) at_shuffle += machine.fibers[t].state == State::AtShuffle;
    if (at_shuffle == 0) continue;
    if (lanes < 32) fail("a shuffle in a warp of fewer than 32 threads", lanes);
    if (at_shuffle == 32) {
      for (int t = first; t < first + 32; ++t) machine.fibers[t].state = State::Ready;
      any = true;
    } else {
      all = false;
    }
  }
  if (any) return true;
  for (int t = 0; t < threads; ++t) {
    const State state = machine.fibers[t].state;
    waiting = waiting || state == State::AtBarrier;
    all = all && (state == State::AtBarrier || state == State::Done);
  }
  if (!all) fail("threads wait at a shuffle for lanes that are elsewhere or have left");
  if (!waiting) return false;
  for (int t = 0; t < threads; ++t) {
    Fiber& fiber = machine.fibers[t];
    if (fiber.state == State::Done) fail("a barrier that some threads never reach", t);
    fiber.state = State::Ready;
    ++fiber.awaited;
  }
  machine.barrier_or_result = machine.barrier_or;
  machine.barrier_or = 0;
  return true;
}

inline void run_block(unsigned block, const std::vector<int>& order) {
  machine.block = block;
  ++machine.serial;
  std::fill(machine.parity.begin(), machine.parity.end(), 0);
  for (auto& fetches : machine.fetches) fetches.clear();
  std::fill(machine.commits.begin(), machine.commits.end(), 0);
  for (unsigned t = 0; t < machine.threads * machine.peers; ++t) start(machine.fibers[t]);
  do {
    for (int thread : order) {
      if (machine.fibers[thread].state == State::Ready) resume(thread);
    }
  } while (release());
}

inline void check_writes() {
  auto& writes = machine.writes;
  std::sort(writes.begin(), writes.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  for (std::size_t i = 1; i < writes.size(); ++i) {
    if (writes[i - 1].at + writes[i - 1].size > writes[i].at) fail("an element is written twice in a launch", static_cast<long long>(writes[i].at), writes[i].size);
  }
  writes.clear();
}

inline void run(void (*body)(const void*), const void* params, const unsigned* grid, const unsigned* block, unsigned cluster) {
  machine.body = body;
  machine.params = params;
  machine.threads = block[0];
  machine.peers = cluster;
  const unsigned count = block[0] * cluster;
  if (cluster > kPeers || (cluster > 1 && block[0] % 32 != 0) || grid[0] % cluster != 0) fail("clusters of this kind are not modelled", cluster, block[0]);
  if (machine.fibers.size() < count) machine.fibers.resize(count);
  for (auto& words : machine.words) words.resize(count);
  machine.parity.resize(count);
  machine.fetches.resize(count);
  machine.commits.resize(count);
  unsigned long long random = 0x9e3779b97f4a7c15ull;
  const bool large = static_cast<unsigned long long>(grid[0]) * block[0] > (1u << 16);
  for (const Order kind : {Order::Up, Order::Down, Order::Mixed}) {
    if (large && kind != Order::Mixed) continue;
    std::vector<int> order(count);
    for (unsigned t = 0; t < count; ++t) order[t] = static_cast<int>(kind == Order::Down ? count - 1 - t : t);
    for (unsigned b = 0; b < grid[0]; b += cluster) {
      if (kind == Order::Mixed) {
        for (unsigned t = count; t > 1; --t) {
          random = random * 6364136223846793005ull + 1442695040888963407ull;
          std::swap(order[t - 1], order[(random >> 33) % t]);
        }
      }
      run_block(kind == Order::Up ? b : grid[0] - cluster - b, order);
    }
    check_writes();
  }
  for (Fiber& fiber : machine.fibers) {
    if (fiber.stack != nullptr) munmap(fiber.stack, kStack);
  }
  machine.fibers.clear();
}

inline int rank() { return machine.current / static_cast<int>(machine.threads); }
inline void arrive() {
  Fiber& fiber = machine.fibers[machine.current];
  if (fiber.arrived != fiber.awaited) fail("a thread arrives twice at a barrier", machine.current);
  ++fiber.arrived;
}
inline void await() {
  const Fiber& fiber = machine.fibers[machine.current];
  if (fiber.arrived != fiber.awaited + 1) fail("a thread waits at a barrier at which it has not arrived", machine.current);
  wait(State::AtBarrier);
}

inline void note_write(const void* at, std::size_t size) { machine.writes.push_back({reinterpret_cast<std::uintptr_t>(at), static_cast<unsigned>(size)}); }

// ---- shared memory ------------------------------------------------------------------------------------------------------
// One of each block that runs. An access is ordered after another thread's when this thread has awaited a barrier at which that one
// arrived after its access.
template <class T, int N>
struct Shared {
  struct Access {
    int thread = -1;
    unsigned arrived = 0;
    bool is_before_me() const { return thread == machine.current || machine.fibers[machine.current].awaited > arrived; }
    void set() { thread = machine.current, arrived = machine.fibers[machine.current].arrived; }
  };
  struct Cell {
    T value;
    unsigned serial = 0;
    Access write, reads[2];  // the last two threads to read: of all readers, one that is not the writer has come as far as any
  };
  Cell cells[kPeers][N];

  Cell& cell(int block, long long at) {
    if (at < 0 || at >= N) fail("shared memory out of bounds", at, N);
    Cell& found = cells[block][at];
    if (found.serial != machine.serial) {
      found.serial = machine.serial;
      found.write = found.reads[0] = found.reads[1] = Access();
    }
    return found;
  }
  T take(long long at) {
    Cell& found = cell(rank(), at);
    if (found.write.thread < 0) fail("shared memory is read before it is written", at);
    if (!found.write.is_before_me()) fail("race: written and read between two barriers", at, found.write.thread);
    Access* mine = &found.reads[found.reads[1].thread == machine.current || (found.reads[0].thread != machine.current && found.reads[1].arrived <= found.reads[0].arrived)];
    if (found.reads[0].thread < 0) mine = &found.reads[0];
    mine->set();
    return found.value;
  }
  void place(long long at, const T& value, int block) {
    Cell& found = cell(block, at);
    if (found.write.thread >= 0 && !found.write.is_before_me()) fail("race: written by two threads between two barriers", at, found.write.thread);
    for (const Access& read : found.reads) {
      if (read.thread >= 0 && !read.is_before_me()) fail("race: read and written between two barriers", at, read.thread);
    }
    found.value = value;
    found.write.set();
  }
};

inline void meet() {
  arrive();
  await();
}

// Rounds of posts between the blocks of a cluster. A thread posts a round (or has a warp's lanes do it) before it awaits it, and awaits
// it before it posts the next: so who has awaited a round comes after all that any thread did before it posted that round. It is modelled as
// a barrier at which a thread arrives when it awaits.
struct Exchange {
  struct Bank {
    unsigned serial = 0;
    int rounds = 0;
    long long expected = 0, posted = 0;
  };
  Bank banks[kPeers][2];

  Bank& bank(int block, int which) {
    Bank& found = banks[block][which];
    if (found.serial != machine.serial) found = Bank{machine.serial, 0, 0, 0};
    return found;
  }
  void open(int peers) {
    if (peers != static_cast<int>(machine.peers)) fail("a cluster of another size", peers, machine.peers);
    if (peers > 1) meet();
  }
  void expect(int which, long long bytes) { bank(rank(), which).expected += bytes; }
  void post(int block, int which, long long bytes) { bank(block, which).posted += bytes; }
  void await(int which, int parity) {
    meet();
    Bank& mine = bank(rank(), which);
    if (mine.posted != mine.expected) fail("a round of posts is not what the block expects", mine.posted, mine.expected);
    if (machine.current % static_cast<int>(machine.threads) == 0 && mine.rounds++ % 2 != parity) fail("a round is awaited by the wrong parity", parity);
  }
};

// Fetches land when they are waited for, not before: until then their place holds bytes that are no numbers.
inline void fetch(char* to, const char* from, std::size_t bytes) {
  std::memset(to, 0xff, bytes);
  machine.fetches[machine.current].push_back({to, from, bytes, machine.commits[machine.current]});
}
inline void await_fetches(int under_way) {
  auto& fetches = machine.fetches[machine.current];
  std::vector<Machine::Fetch> rest;
  for (const Machine::Fetch& fetch : fetches) {
    if (fetch.commit < machine.commits[machine.current] - under_way) std::memcpy(fetch.to, fetch.from, fetch.bytes);
    else rest.push_back(fetch);
  }
  fetches = std::move(rest);
}
inline void check_fetched(const char* from, std::size_t bytes) {
  for (const auto& fetches : machine.fetches) {
    for (const Machine::Fetch& fetch : fetches) {
      if (fetch.to < from + bytes && from < fetch.to + fetch.bytes) fail("a pack is read before its fetch was waited for");
    }
  }
}

}  // namespace fxf_emu

// ---- the functions that the rest of the prelude and kernels use ----------------------------------------------------------
#define FXF_INLINE static inline
#define FXF_KERNEL(...) static void
#define FXF_PARAM
#define FXF_UNROLL
#define FXF_SHARED(type, name, count) static fxf_emu::Shared<type, count> name
#define FXF_DYNAMIC(name)                                       \
  alignas(16) static char name##_of[fxf_emu::kPeers][232448];   \
  char* const name = name##_of[fxf_emu::rank()]
#define FXF_TAKE(shared, at) (shared).take(at)
#define FXF_PLACE(shared, at, value) (shared).place(at, value, fxf_emu::rank())
#define FXF_EXCHANGE(name) static fxf_emu::Exchange name
#define FXF_POST(shared, at, value, peer, exchange, bank) ((shared).place(at, value, peer), (exchange).post(peer, bank, sizeof(value)))
#define FXF_EMULATED(entry)                                                                             \
  extern "C" __attribute__((visibility("default"))) void run_##entry(const void* params, const unsigned* grid, const unsigned* block, unsigned cluster) { \
    fxf_emu::run([](const void* p) { entry(*static_cast<const Params*>(p)); }, params, grid, block, cluster); \
  }
#define __device__

#define FXF_INF_F __builtin_inff()
#define FXF_NAN_F __builtin_nanf("")
#define FXF_INF_D __builtin_inf()
#define FXF_NAN_D __builtin_nan("")

using std::max;
using std::min;

FXF_INLINE int fxf_thread() { return fxf_emu::machine.current % static_cast<int>(fxf_emu::machine.threads); }
FXF_INLINE int fxf_block() { return static_cast<int>(fxf_emu::machine.block) + fxf_emu::rank(); }
FXF_INLINE void fxf_barrier() {
  if (fxf_emu::machine.peers > 1) fxf_emu::fail("a barrier of one block in a cluster is not modelled");
  fxf_emu::arrive();
  fxf_emu::await();
}
template <int Peers>
FXF_INLINE void fxf_open_exchange(fxf_emu::Exchange& exchange) { exchange.open(Peers); }
template <int Peers>
FXF_INLINE void fxf_expect_posts(fxf_emu::Exchange& exchange, int bank, int bytes) { exchange.expect(bank, bytes); }
template <int Peers>
FXF_INLINE void fxf_await_posts(fxf_emu::Exchange& exchange, int bank, int parity) {
  if (Peers == 1) fxf_barrier();
  else exchange.await(bank, parity);
}
template <int Peers>
FXF_INLINE void fxf_close_exchange() {
  if (Peers > 1) fxf_emu::meet();
}

FXF_INLINE float fxf_from_bits(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
FXF_INLINE unsigned fxf_bits(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
FXF_INLINE unsigned fxf_mulhi(unsigned a, unsigned b) { return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32); }

FXF_INLINE unsigned fxf_funnel(unsigned low, unsigned high, int bits) { return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> bits); }

FXF_INLINE float fxf_flushing_exp2(float x) {
  const float out = exp2f(x);
  return out < 0x1p-126f ? 0.0f : out;
}
FXF_INLINE float fxf_flushing_reciprocal(float x) {
  const float out = 1.0f / x;
  return fabsf(out) < 0x1p-126f ? 0.0f : out;
}
FXF_INLINE float fxf_approx_sqrt(float x) { return sqrtf(x); }
FXF_INLINE float fxf_nan_max(float a, float b) { return a < b || b != b ? b : a; }
FXF_INLINE float fxf_nan_min(float a, float b) { return b < a || b != b ? b : a; }

FXF_INLINE unsigned fxf_shuffle_word(unsigned word, int mask) {
  auto& machine = fxf_emu::machine;
  const int me = machine.current, parity = machine.parity[me];
  machine.parity[me] ^= 1;
  machine.words[parity][me] = word;
  fxf_emu::wait(fxf_emu::State::AtShuffle);
  return machine.words[parity][me ^ mask];
}
template <class T>
FXF_INLINE T fxf_shuffle(T value, int mask) {
  unsigned word[(sizeof(T) + 3) / 4] = {};
  std::memcpy(word, &value, sizeof value);
  for (unsigned& part : word) part = fxf_shuffle_word(part, mask);
  std::memcpy(static_cast<void*>(&value), word, sizeof value);
  return value;
}

FXF_INLINE bool fxf_arrive_last(unsigned* counter, unsigned blocks) {
  fxf_barrier();
  if (fxf_thread() == 0) {
    fxf_emu::machine.barrier_or |= *counter == blocks - 1;
    *counter = *counter == blocks - 1 ? 0 : *counter + 1;
  }
  fxf_barrier();
  return fxf_emu::machine.barrier_or_result != 0;
}

struct fxf_half { unsigned short bits; };
struct fxf_bfloat16 { unsigned short bits; };
struct fxf_float8_e4m3 { unsigned char bits; };
struct fxf_float8_e5m2 { unsigned char bits; };

FXF_INLINE float fxf_widen(fxf_half value) {
  const unsigned sign = (value.bits & 0x8000u) << 16, exponent = value.bits >> 10 & 31u, fraction = value.bits & 1023u;
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -size : size;
  }
  return fxf_from_bits(sign | (exponent == 31 ? 255u << 23 : (exponent + 112u) << 23) | fraction << 13);
}
FXF_INLINE fxf_half fxf_narrow_half(float value) {
  const unsigned bits = fxf_bits(value), sign = bits >> 16 & 0x8000u;
  const float size = std::fabs(value);
  if (value != value) return {static_cast<unsigned short>(0x7fffu)};
  if (size >= 65520.0f) return {static_cast<unsigned short>(sign | 0x7c00u)};
  if (size < 0x1p-14f) return {static_cast<unsigned short>(sign | static_cast<unsigned>(std::nearbyint(size * 0x1p24f)))};
  const unsigned rounded = (bits & 0x7fffffffu) + 0xfffu + (bits >> 13 & 1u);
  return {static_cast<unsigned short>(sign | ((rounded >> 13) - (112u << 10)))};
}
FXF_INLINE float fxf_widen(fxf_bfloat16 value) { return fxf_from_bits(static_cast<unsigned>(value.bits) << 16); }
FXF_INLINE fxf_bfloat16 fxf_narrow_bfloat16(float value) {
  const unsigned bits = fxf_bits(value);
  return {static_cast<unsigned short>(value != value ? 0x7fffu : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

template <class S, int N>
struct alignas(sizeof(S) * N < 16 ? sizeof(S) * N : 16) fxf_pack {
  S at[N];
};
template <class Pack>
FXF_INLINE void fxf_check_pack(const void* at) {
  const std::size_t needed = sizeof(Pack) < 16 ? sizeof(Pack) : 16;
  if (reinterpret_cast<std::uintptr_t>(at) % needed != 0) fxf_emu::fail("a pack is not aligned", static_cast<long long>(reinterpret_cast<std::uintptr_t>(at)), static_cast<long long>(needed));
}
template <int N, class S>
FXF_INLINE fxf_pack<S, N> fxf_load(const S* from) {
  fxf_check_pack<fxf_pack<S, N>>(from);
  fxf_pack<S, N> pack;
  for (int e = 0; e < N; ++e) pack.at[e] = from[e];
  return pack;
}
template <int N, class S>
FXF_INLINE void fxf_store_pack(S* to, const fxf_pack<S, N>& pack) {
  fxf_check_pack<fxf_pack<S, N>>(to);
  fxf_emu::note_write(to, sizeof pack);
  for (int e = 0; e < N; ++e) to[e] = pack.at[e];
}
template <class Pack, class S>
FXF_INLINE void fxf_fetch(char* to, const S* from) {
  fxf_check_pack<Pack>(from);
  fxf_emu::fetch(to, reinterpret_cast<const char*>(from), sizeof(Pack));
}
template <class Pack, class S, class I>
FXF_INLINE void fxf_fetch_within(char* to, const S* from, I at, I end) {
  fxf_check_pack<Pack>(from + at);
  const I count = std::min<I>(end - at, sizeof(Pack) / sizeof(S));
  if (at < 0 || count <= 0) fxf_emu::fail("a fetch outside its tensor", at, end);
  fxf_emu::fetch(to, reinterpret_cast<const char*>(from + at), static_cast<std::size_t>(count) * sizeof(S));
  std::memset(to + count * sizeof(S), 0, sizeof(Pack) - count * sizeof(S));
}
FXF_INLINE void fxf_commit_fetches() { ++fxf_emu::machine.commits[fxf_emu::machine.current]; }
template <int N>
FXF_INLINE void fxf_await_fetches() { fxf_emu::await_fetches(N); }
template <class Pack>
FXF_INLINE Pack fxf_fetched(const char* from) {
  fxf_emu::check_fetched(from, sizeof(Pack));
  Pack pack;
  std::memcpy(static_cast<void*>(&pack), from, sizeof pack);
  return pack;
}
template <class T>
FXF_INLINE T fxf_get_fresh(const T* from) { return *from; }
template <class T>
FXF_INLINE void fxf_put_partial(T* to, const T& value) {
  fxf_emu::note_write(to, sizeof value);
  *to = value;
}
template <class S>
FXF_INLINE S fxf_read(const S* from) { return *from; }
template <class S>
FXF_INLINE void fxf_write(S* to, S value) {
  fxf_emu::note_write(to, sizeof value);
  *to = value;
}
template <int N>
FXF_INLINE float fxf_get(const fxf_pack<fxf_half, N>& pack, int e) { return fxf_widen(pack.at[e]); }
template <int N>
FXF_INLINE float fxf_get(const fxf_pack<fxf_bfloat16, N>& pack, int e) { return fxf_widen(pack.at[e]); }
template <int N>
FXF_INLINE fxf_pack<fxf_half, N> fxf_pack_of(const fxf_half*, const float (&value)[N]) {
  fxf_pack<fxf_half, N> pack;
  for (int e = 0; e < N; ++e) pack.at[e] = fxf_narrow_half(value[e]);
  return pack;
}
template <int N>
FXF_INLINE fxf_pack<fxf_bfloat16, N> fxf_pack_of(const fxf_bfloat16*, const float (&value)[N]) {
  fxf_pack<fxf_bfloat16, N> pack;
  for (int e = 0; e < N; ++e) pack.at[e] = fxf_narrow_bfloat16(value[e]);
  return pack;
}

// What CUDA's mathematical library has and C's has not.
FXF_INLINE double rsqrt(double x) { return 1.0 / std::sqrt(x); }
FXF_INLINE float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
FXF_INLINE double erfinv(double x) {
  if (!(std::fabs(x) < 1.0)) return std::fabs(x) == 1.0 ? x * __builtin_inf() : __builtin_nan("");
  // Newton on erf (for small values) or erfc, from Winitzki's approximation.
  const double l = std::log1p(-x * x), a = 0.147, t = 2.0 / (3.14159265358979323846 * a) + l / 2;
  double y = std::copysign(std::sqrt(std::sqrt(t * t - l / a) - t), x);
  for (int i = 0; i < 4; ++i) {
    const double error = std::fabs(x) < 0.5 ? std::erf(y) - x : (x > 0 ? (1 - x) - std::erfc(y) : std::erfc(-y) - (1 + x));
    y -= error / (1.12837916709551257390 * std::exp(-y * y));
  }
  return y;
}
FXF_INLINE float erfinvf(float x) { return static_cast<float>(erfinv(static_cast<double>(x))); }
