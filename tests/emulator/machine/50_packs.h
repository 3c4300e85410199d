// Narrow types, packs, and access to global memory.

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
template <int Count, class S, int N>
FXF_INLINE fxf_pack<S, Count> fxf_part(const fxf_pack<S, N>& pack, int part) {
  fxf_pack<S, Count> out;
  for (int e = 0; e < Count; ++e) out.at[e] = pack.at[part * Count + e];
  return out;
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
