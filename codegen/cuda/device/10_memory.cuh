// Elements in memory and in registers: fxf_get widens, fxf_put converts and stores.

// Eight-bit floats, by the rules of PyTorch: e4m3 has no infinity (what is too large becomes NaN), e5m2 has.
FXF_INLINE float fxf_widen(fxf_float8_e4m3 value) {
  const unsigned low = value.bits & 0x7fu;
  const float size = low == 0x7fu ? FXF_NAN_F : fxf_from_bits(low << 20) * fxf_from_bits((127u + 120u) << 23);
  return value.bits & 0x80u ? -size : size;
}
FXF_INLINE float fxf_widen(fxf_float8_e5m2 value) { return fxf_widen(fxf_half{(unsigned short)(value.bits << 8)}); }

// Rounds to nearest even with `kept` bits of fraction and the smallest exponent `lowest`; `bias` is the narrow exponent's.
FXF_INLINE unsigned fxf_round_bits(float size, int kept, int lowest) {
  const unsigned bits = fxf_bits(size);
  const unsigned smallest = (unsigned)(lowest + 127) << 23;
  if (bits < smallest) {
    // Denormal there: adding a power of two leaves exactly the bits that are kept, rounded by the adder.
    const float step = fxf_from_bits((unsigned)(lowest + 127 + 23 - kept) << 23);
    return fxf_bits(size + step) - fxf_bits(step);
  }
  const int shift = 23 - kept;
  const unsigned rounded = bits + ((1u << (shift - 1)) - 1u) + ((bits >> shift) & 1u);
  return (rounded - smallest + (1u << 23)) >> shift;
}
FXF_INLINE fxf_float8_e4m3 fxf_narrow_float8_e4m3(float value) {
  const unsigned sign = (fxf_bits(value) >> 24) & 0x80u;
  const float size = fxf_from_bits(fxf_bits(value) & 0x7fffffffu);
  // 464 lies half way between the largest number, 448, and the first that is none.
  const unsigned bits = size <= 464.0f ? fxf_round_bits(size, 3, -6) : 0x7fu;
  return fxf_float8_e4m3{(unsigned char)(sign | bits)};
}
FXF_INLINE fxf_float8_e5m2 fxf_narrow_float8_e5m2(float value) {
  const unsigned sign = (fxf_bits(value) >> 24) & 0x80u;
  const float size = fxf_from_bits(fxf_bits(value) & 0x7fffffffu);
  // NaN keeps a quiet bit; 61440 and above round to infinity.
  const unsigned bits = value != value ? 0x7fu : size < 61440.0f ? fxf_round_bits(size, 2, -14) : 0x7cu;
  return fxf_float8_e5m2{(unsigned char)(sign | bits)};
}

FXF_INLINE float fxf_round_half(float v) { return fxf_widen(fxf_narrow_half(v)); }
FXF_INLINE float fxf_round_bfloat16(float v) { return fxf_widen(fxf_narrow_bfloat16(v)); }
FXF_INLINE float fxf_round_float8_e4m3(float v) { return fxf_widen(fxf_narrow_float8_e4m3(v)); }
FXF_INLINE float fxf_round_float8_e5m2(float v) { return fxf_widen(fxf_narrow_float8_e5m2(v)); }

template <class S>
FXF_INLINE S fxf_widen(S value) { return value; }

template <class S, class I>
FXF_INLINE auto fxf_get(const S* from, I i) { return fxf_widen(fxf_read(from + i)); }

template <class S, class I>
FXF_INLINE void fxf_put(S* to, I i, S value) { fxf_write(to + i, value); }
template <class I>
FXF_INLINE void fxf_put(fxf_half* to, I i, float value) { fxf_write(to + i, fxf_narrow_half(value)); }
template <class I>
FXF_INLINE void fxf_put(fxf_bfloat16* to, I i, float value) { fxf_write(to + i, fxf_narrow_bfloat16(value)); }
template <class I>
FXF_INLINE void fxf_put(fxf_float8_e4m3* to, I i, float value) { fxf_write(to + i, fxf_narrow_float8_e4m3(value)); }
template <class I>
FXF_INLINE void fxf_put(fxf_float8_e5m2* to, I i, float value) { fxf_write(to + i, fxf_narrow_float8_e5m2(value)); }

template <class S, int N>
FXF_INLINE auto fxf_get(const fxf_pack<S, N>& pack, int e) { return fxf_widen(pack.at[e]); }
template <class S, int N>
FXF_INLINE fxf_pack<S, N> fxf_pack_of(const S*, const S (&value)[N]) {
  fxf_pack<S, N> pack;
  FXF_UNROLL
  for (int e = 0; e < N; ++e) pack.at[e] = value[e];
  return pack;
}
template <int N>
FXF_INLINE fxf_pack<fxf_float8_e4m3, N> fxf_pack_of(const fxf_float8_e4m3*, const float (&value)[N]) {
  fxf_pack<fxf_float8_e4m3, N> pack;
  FXF_UNROLL
  for (int e = 0; e < N; ++e) pack.at[e] = fxf_narrow_float8_e4m3(value[e]);
  return pack;
}
template <int N>
FXF_INLINE fxf_pack<fxf_float8_e5m2, N> fxf_pack_of(const fxf_float8_e5m2*, const float (&value)[N]) {
  fxf_pack<fxf_float8_e5m2, N> pack;
  FXF_UNROLL
  for (int e = 0; e < N; ++e) pack.at[e] = fxf_narrow_float8_e5m2(value[e]);
  return pack;
}
// Converts N register values and stores them at an aligned address.
template <class S, class R, int N>
FXF_INLINE void fxf_store(S* to, const R (&value)[N]) {
  fxf_store_pack<N>(to, fxf_pack_of(to, value));
}

// Rows that start anywhere in a pack. Is an element of the row?
FXF_INLINE bool fxf_inside(int at, int length) { return (unsigned)at < (unsigned)length; }
FXF_INLINE bool fxf_inside(long long at, long long length) { return (unsigned long long)at < (unsigned long long)length; }
// The pack at the aligned offset `at`; of elements outside [0, end), which are not read, it has zeros.
template <int N, class S, class I>
FXF_INLINE fxf_pack<S, N> fxf_load_within(const S* from, I at, I end) {
  if (at >= 0 && at + N <= end) return fxf_load<N>(from + at);
  union Elements {
    fxf_pack<S, N> pack;
    S element[N];
    __device__ Elements() {}
  } elements;
  FXF_UNROLL
  for (int e = 0; e < N; ++e) elements.element[e] = fxf_inside(at + e, end) ? fxf_read(from + (at + e)) : S{};
  return elements.pack;
}
// The same at any offset: from the two aligned packs that have it.
template <int N, class S, class I>
FXF_INLINE fxf_pack<S, N> fxf_load_across(const S* from, I at, I end) {
  constexpr int kWords = (int)(N * sizeof(S) / 4);
  union Window {
    fxf_pack<S, N> pack[2];
    unsigned word[2 * kWords];
    __device__ Window() {}
  } window;
  const int bytes = (int)(at & (N - 1)) * (int)sizeof(S);
  const I low = at & ~(I)(N - 1);
  window.pack[0] = fxf_load_within<N>(from, low, end);
  window.pack[1] = fxf_load_within<N>(from, low + N, end);
  FXF_UNROLL
  for (int step = kWords / 2; step > 0; step /= 2) {
    FXF_UNROLL
    for (int w = 0; w < 2 * kWords - step; ++w) window.word[w] = bytes & 4 * step ? window.word[w + step] : window.word[w];
  }
  if constexpr (sizeof(S) < 4) {
    FXF_UNROLL
    for (int w = 0; w < kWords; ++w) window.word[w] = fxf_funnel(window.word[w], window.word[w + 1], bytes % 4 * 8);
  }
  return window.pack[0];
}
// Stores those of N neighbours that are in the row; `first` is the place of the first of them in the row.
template <class S, class R, int N, class I>
FXF_INLINE void fxf_store_inside(S* to, I at, const R (&value)[N], I first, I length) {
  if (first >= 0 && first + N <= length) {
    fxf_store(to + at, value);
    return;
  }
  FXF_UNROLL
  for (int e = 0; e < N; ++e) {
    if (fxf_inside(first + e, length)) fxf_put(to, at + e, value[e]);
  }
}

// The same pack, in a way that no compiler sees through: `zero` is a kernel argument.
template <class S, int N, class I>
FXF_INLINE void fxf_renew(fxf_pack<S, N>& pack, I zero) {
  constexpr int kWords = (int)(sizeof(pack) / 4);
  union Words {
    fxf_pack<S, N> pack;
    unsigned word[kWords > 0 ? kWords : 1];
    __device__ Words() {}
  } words;
  words.pack = pack;
  FXF_UNROLL
  for (int w = 0; w < kWords; ++w) words.word[w] ^= (unsigned)zero;
  pack = words.pack;
}

// Quotient by a divisor whose multiplier was made with the plan: right for 0 <= n < 2^31. The shift is in the high word.
FXF_INLINE int fxf_divide(int n, long long magic) {
  const unsigned value = (unsigned)n;
  return (int)((fxf_mulhi(value, (unsigned)magic) + value) >> (unsigned)((unsigned long long)magic >> 32));
}
template <class I>
FXF_INLINE bool fxf_within(I value, I low, I high) { return low <= value && value < high; }
// An index that may count from the end, kept inside [0, extent).
template <class I, class V>
FXF_INLINE I fxf_wrap(V index, I extent) {
  const long long wrapped = (long long)index < 0 ? (long long)index + extent : (long long)index;
  return (I)(wrapped < 0 ? 0 : wrapped >= extent ? extent - 1 : wrapped);
}
