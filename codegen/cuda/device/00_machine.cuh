// The machine under a generated kernel: the only prelude file with intrinsics and inline assembly. The emulator of the tests
// replaces this file and nothing else, so whatever touches threads, barriers, shared memory, global memory or the encodings
// of narrow floats is a function here.

#define FXF_INLINE static __device__ __forceinline__
#ifdef FXF_FREE_REGISTERS  // the threads alone bind the compiler
#define FXF_KERNEL(threads, ...) extern "C" __global__ void __launch_bounds__(threads)
#else
#define FXF_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#endif
#define FXF_PARAM __grid_constant__
#define FXF_UNROLL _Pragma("unroll")
#define FXF_SHARED(type, name, count) __shared__ type name[count]
#define FXF_DYNAMIC(name) extern __shared__ __align__(16) char name[]
#define FXF_TAKE(shared, at) (shared)[at]
#define FXF_PLACE(shared, at, value) (shared)[at] = (value)
#define FXF_EXCHANGE(name) __shared__ unsigned long long name[2]
#define FXF_POST(shared, at, value, peer, exchange, bank) fxf_post(&(shared)[at], value, peer, &(exchange)[bank])

#define FXF_INF_F __int_as_float(0x7f800000)
#define FXF_NAN_F __int_as_float(0x7fc00000)
#define FXF_INF_D __longlong_as_double(0x7ff0000000000000ll)
#define FXF_NAN_D __longlong_as_double(0x7ff8000000000000ll)

FXF_INLINE int fxf_thread() { return (int)threadIdx.x; }
FXF_INLINE int fxf_block() { return (int)blockIdx.x; }
FXF_INLINE void fxf_barrier() { __syncthreads(); }

FXF_INLINE float fxf_from_bits(unsigned bits) { return __uint_as_float(bits); }
FXF_INLINE unsigned fxf_bits(float value) { return __float_as_uint(value); }
FXF_INLINE unsigned fxf_mulhi(unsigned a, unsigned b) { return __umulhi(a, b); }
// The low word of both together, moved right by fewer bits than a word has.
FXF_INLINE unsigned fxf_funnel(unsigned low, unsigned high, int bits) { return __funnelshift_r(low, high, bits); }

// Approximations of the machine, within 2 units of the last place; the flushing ones give 0 for results below 2^-126.
FXF_INLINE float fxf_flushing_exp2(float x) {
  float out;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
FXF_INLINE float fxf_flushing_reciprocal(float x) {
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
FXF_INLINE float fxf_approx_sqrt(float x) {
  float out;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}
// The larger and the smaller; a NaN wins.
FXF_INLINE float fxf_nan_max(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float out;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
#else
  return a < b || b != b ? b : a;
#endif
}
FXF_INLINE float fxf_nan_min(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float out;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
#else
  return b < a || b != b ? b : a;
#endif
}

// The value of the lane whose number differs in the bits of `mask`; every lane of the warp takes part.
FXF_INLINE unsigned fxf_shuffle_word(unsigned word, int mask) { return __shfl_xor_sync(0xffffffffu, word, mask); }
template <class T>
FXF_INLINE T fxf_shuffle(T value, int mask) {
  constexpr int kWords = (sizeof(T) + 3) / 4;
  union Words {
    T value;
    unsigned word[kWords];
    __device__ Words() {}
  } words;
  words.word[kWords - 1] = 0;
  words.value = value;
  FXF_UNROLL
  for (int w = 0; w < kWords; ++w) words.word[w] = fxf_shuffle_word(words.word[w], mask);
  return words.value;
}

// The second of two launches may begin when all blocks of the first have (PTX ISA, griddepcontrol), and awaits what they write.
FXF_INLINE void fxf_let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
FXF_INLINE void fxf_await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The blocks of a cluster are peers. They exchange values in rounds that take turns at two banks of shared memory: a block expects so
// many bytes in a round, each peer posts its own, and who awaits the round has them. A post waits for nothing else that its block has
// written (PTX ISA, st.async and mbarrier). No block posts a round before it has awaited the one before. A block alone has no posts:
// its threads place values, and await each other.
FXF_INLINE void fxf_meet_peers() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
template <int Peers>
FXF_INLINE void fxf_open_exchange(unsigned long long* exchange) {
#if __CUDA_ARCH__ >= 900
  if constexpr (Peers > 1) {
    if (threadIdx.x == 0) {
      for (int bank = 0; bank < 2; ++bank) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(exchange + bank)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    fxf_meet_peers();
  }
#endif
}
// By one thread of the block.
template <int Peers>
FXF_INLINE void fxf_expect_posts(unsigned long long* exchange, int bank, int bytes) {
#if __CUDA_ARCH__ >= 900
  if constexpr (Peers > 1) asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n\t}" ::"r"((unsigned)__cvta_generic_to_shared(exchange + bank)), "r"(bytes) : "memory");
#endif
}
template <int Peers>
FXF_INLINE void fxf_await_posts(unsigned long long* exchange, int bank, int parity) {
  if constexpr (Peers == 1) __syncthreads();
#if __CUDA_ARCH__ >= 900
  else {
    unsigned done = 0;
    const unsigned place = (unsigned)__cvta_generic_to_shared(exchange + bank);
    while (!done) {
      asm volatile("{\n\t.reg .pred done;\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\tselp.u32 %0, 1, 0, done;\n\t}" : "=r"(done) : "r"(place), "r"(parity) : "memory");
    }
  }
#endif
}
// No block leaves while a peer may still post to it.
template <int Peers>
FXF_INLINE void fxf_close_exchange() {
  if constexpr (Peers > 1) fxf_meet_peers();
}
// To the place in a peer's shared memory that `own` is in this block's. T has whole words.
template <class T>
FXF_INLINE void fxf_post(T* own, const T& value, int peer, unsigned long long* exchange) {
#if __CUDA_ARCH__ >= 900
  union Words {
    T value;
    unsigned word[sizeof(T) / 4];
    __device__ Words() {}
  } words;
  words.value = value;
  unsigned place = (unsigned)__cvta_generic_to_shared(own), barrier = (unsigned)__cvta_generic_to_shared(exchange);
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"(place), "r"(peer));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(barrier), "r"(peer));
  FXF_UNROLL
  for (int w = 0; w < (int)(sizeof(T) / 4); ++w) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(place + 4 * w), "r"(words.word[w]), "r"(barrier) : "memory");
  }
#endif
}

// Memory types of the narrow floats.
struct fxf_half { unsigned short bits; };
struct fxf_bfloat16 { unsigned short bits; };
struct fxf_float8_e4m3 { unsigned char bits; };
struct fxf_float8_e5m2 { unsigned char bits; };

FXF_INLINE float fxf_widen(fxf_half value) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
}
FXF_INLINE fxf_half fxf_narrow_half(float value) {
  fxf_half narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
}
FXF_INLINE float fxf_widen(fxf_bfloat16 value) { return __uint_as_float((unsigned)value.bits << 16); }
FXF_INLINE fxf_bfloat16 fxf_narrow_bfloat16(float value) {
  fxf_bfloat16 narrow;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
#else
  const unsigned bits = __float_as_uint(value);
  narrow.bits = value != value ? 0x7fff : (unsigned short)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
  return narrow;
}
// Two at once: `low` in the low half of the word.
FXF_INLINE unsigned fxf_narrow_two_half(float low, float high) {
#if __CUDA_ARCH__ >= 800
  unsigned word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return (unsigned)fxf_narrow_half(low).bits | (unsigned)fxf_narrow_half(high).bits << 16;
#endif
}
FXF_INLINE unsigned fxf_narrow_two_bfloat16(float low, float high) {
#if __CUDA_ARCH__ >= 800
  unsigned word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return (unsigned)fxf_narrow_bfloat16(low).bits | (unsigned)fxf_narrow_bfloat16(high).bits << 16;
#endif
}

// N neighbours as they lie in memory, moved by as few instructions as their bytes allow (up to 16 each).
template <class S, int N>
struct alignas(sizeof(S) * N < 16 ? sizeof(S) * N : 16) fxf_pack {
  S at[N];
};
template <int N>
struct alignas(N * 2 < 16 ? N * 2 : 16) fxf_pack<fxf_half, N> {
  unsigned word[N / 2];
};
template <int N>
struct alignas(N * 2 < 16 ? N * 2 : 16) fxf_pack<fxf_bfloat16, N> {
  unsigned word[N / 2];
};
template <>
struct fxf_pack<fxf_half, 1> { fxf_half at[1]; };
template <>
struct fxf_pack<fxf_bfloat16, 1> { fxf_bfloat16 at[1]; };

template <int Bytes>
struct fxf_words { typedef uint4 type; };
template <>
struct fxf_words<1> { typedef unsigned char type; };
template <>
struct fxf_words<2> { typedef unsigned short type; };
template <>
struct fxf_words<4> { typedef unsigned type; };
template <>
struct fxf_words<8> { typedef uint2 type; };

template <class Pack>
FXF_INLINE void fxf_copy_pack(void* to, const void* from) {
  typedef typename fxf_words<(sizeof(Pack) < 16 ? sizeof(Pack) : 16)>::type Word;
  FXF_UNROLL
  for (int w = 0; w < (int)(sizeof(Pack) / sizeof(Word)); ++w) ((Word*)to)[w] = ((const Word*)from)[w];
}
// Aligned to its size (at most 16 bytes).
template <int N, class S>
FXF_INLINE fxf_pack<S, N> fxf_load(const S* from) {
  fxf_pack<S, N> pack;
  fxf_copy_pack<fxf_pack<S, N> >(&pack, from);
  return pack;
}
// Part `part` of a pack that has several of Count elements.
template <int Count, class S, int N>
FXF_INLINE fxf_pack<S, Count> fxf_part(const fxf_pack<S, N>& pack, int part) {
  fxf_pack<S, Count> out;
  fxf_copy_pack<fxf_pack<S, Count> >(&out, (const S*)&pack + part * Count);
  return out;
}
template <int N, class S>
FXF_INLINE void fxf_store_pack(S* to, const fxf_pack<S, N>& pack) {
  fxf_copy_pack<fxf_pack<S, N> >(to, &pack);
}

// A pack on its way from global to dynamic shared memory, in the fetches since the last commit. fxf_await_fetches<N> waits until at
// most the last N commits of this thread are under way; the others' packs can then be had by the thread that fetched them.
template <class Pack, class S>
FXF_INLINE void fxf_fetch(char* to, const S* from) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Pack) % 4 == 0) {
    constexpr int kBytes = sizeof(Pack) % 16 == 0 ? 16 : sizeof(Pack) % 8 == 0 ? 8 : 4;
    FXF_UNROLL
    for (int at = 0; at < (int)sizeof(Pack); at += kBytes) {
      const unsigned slot = (unsigned)__cvta_generic_to_shared(to + at);
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(slot), "l"((const char*)from + at), "n"(kBytes) : "memory");
    }
    return;
  }
#endif
  fxf_copy_pack<Pack>(to, from);
}
// The same at offset `at`; elements from `end` on are not read, their places get zeros.
template <class Pack, class S, class I>
FXF_INLINE void fxf_fetch_within(char* to, const S* from, I at, I end) {
  constexpr int kCount = (int)(sizeof(Pack) / sizeof(S));
  const int there = end - at < kCount ? (int)(end - at) * (int)sizeof(S) : (int)sizeof(Pack);
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Pack) % 4 == 0) {
    constexpr int kBytes = sizeof(Pack) % 16 == 0 ? 16 : sizeof(Pack) % 8 == 0 ? 8 : 4;
    FXF_UNROLL
    for (int byte = 0; byte < (int)sizeof(Pack); byte += kBytes) {
      const unsigned slot = (unsigned)__cvta_generic_to_shared(to + byte);
      const int size = there - byte < kBytes ? there > byte ? there - byte : 0 : kBytes;
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(slot), "l"((const char*)(from + at) + byte), "n"(kBytes), "r"(size) : "memory");
    }
    return;
  }
#endif
  FXF_UNROLL
  for (int e = 0; e < kCount; ++e) ((S*)to)[e] = at + e < end ? from[at + e] : S{};
}
FXF_INLINE void fxf_commit_fetches() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int N>
FXF_INLINE void fxf_await_fetches() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}
template <class Pack>
FXF_INLINE Pack fxf_fetched(const char* from) {
  Pack pack;
  fxf_copy_pack<Pack>(&pack, from);
  return pack;
}

// What another block wrote in this launch: past the first-level cache.
template <class T>
FXF_INLINE T fxf_get_fresh(const T* from) {
  union Words {
    T value;
    unsigned word[(sizeof(T) + 3) / 4];
    unsigned char byte[sizeof(T)];
    __device__ Words() {}
  } words;
  if constexpr (sizeof(T) % 4 == 0) {
    FXF_UNROLL
    for (int w = 0; w < (int)(sizeof(T) / 4); ++w) words.word[w] = __ldcg((const unsigned*)from + w);
  } else {
    FXF_UNROLL
    for (int b = 0; b < (int)sizeof(T); ++b) words.byte[b] = __ldcg((const unsigned char*)from + b);
  }
  return words.value;
}
template <class T>
FXF_INLINE void fxf_put_partial(T* to, const T& value) { *to = value; }

// One element in memory.
template <class S>
FXF_INLINE S fxf_read(const S* from) { return *from; }
template <class S>
FXF_INLINE void fxf_write(S* to, S value) { *to = value; }

template <int N>
FXF_INLINE float fxf_get(const fxf_pack<fxf_half, N>& pack, int e) {
  if constexpr (N == 1) return fxf_widen(pack.at[0]);
  else return fxf_widen(fxf_half{(unsigned short)(pack.word[e / 2] >> (e % 2 * 16))});
}
template <int N>
FXF_INLINE float fxf_get(const fxf_pack<fxf_bfloat16, N>& pack, int e) {
  if constexpr (N == 1) return fxf_widen(pack.at[0]);
  else return __uint_as_float(e % 2 ? pack.word[e / 2] & 0xffff0000u : pack.word[e / 2] << 16);
}
template <int N>
FXF_INLINE fxf_pack<fxf_half, N> fxf_pack_of(const fxf_half*, const float (&value)[N]) {
  fxf_pack<fxf_half, N> pack;
  FXF_UNROLL
  for (int w = 0; w < N / 2; ++w) pack.word[w] = fxf_narrow_two_half(value[2 * w], value[2 * w + 1]);
  return pack;
}
template <int N>
FXF_INLINE fxf_pack<fxf_bfloat16, N> fxf_pack_of(const fxf_bfloat16*, const float (&value)[N]) {
  fxf_pack<fxf_bfloat16, N> pack;
  FXF_UNROLL
  for (int w = 0; w < N / 2; ++w) pack.word[w] = fxf_narrow_two_bfloat16(value[2 * w], value[2 * w + 1]);
  return pack;
}
