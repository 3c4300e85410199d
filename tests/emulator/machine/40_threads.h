// What the rest of the prelude and kernels call: places, barriers, shuffles, and the machine's own arithmetic.

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
FXF_INLINE void fxf_let_next_begin() {}  // launches run one after the other
FXF_INLINE void fxf_await_previous() {}
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
