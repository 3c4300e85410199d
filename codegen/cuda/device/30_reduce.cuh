// Folds across lanes, warps and slabs. Every fold is commutative, so all lanes of a butterfly end with the same bits.

// A value and where it was found.
template <class V, class I>
struct fxf_arg {
  V value;
  I index;
};

// A floating-point sum and what its additions lost (two-sum, Knuth, The Art of Computer Programming 2, 4.2.2).
template <class T>
struct fxf_sum {
  T value;
  T lost;
};
template <class T>
FXF_INLINE fxf_sum<T> fxf_join(fxf_sum<T> a, fxf_sum<T> b) {
  const T value = a.value + b.value;
  const T mine = value - b.value, other = value - mine;
  return fxf_sum<T>{value, a.lost + b.lost + ((a.value - mine) + (b.value - other))};
}
// Where the sum overflowed, or met an infinity, what was lost is no number.
template <class T>
FXF_INLINE T fxf_total(fxf_sum<T> sum) {
  return fxf_isfinite(sum.lost) ? sum.value + sum.lost : sum.value;
}

// A sum that gathers: its next few values go to what was lost, as they come, until the pair is settled.
template <class T>
FXF_INLINE fxf_sum<T> fxf_settle(fxf_sum<T> sum) {
  const T value = sum.value + sum.lost;
  const T other = value - sum.value;
  return fxf_sum<T>{value, fxf_isfinite(value) ? (sum.value - (value - other)) + (sum.lost - other) : (T)0};
}

// A maximum, and the sum of exp(x - top) over the values x that it is the maximum of. Of a maximum that is infinite the differences are
// no numbers, nor is the sum; until something larger than -inf comes it is 0.
template <class T>
struct fxf_online {
  T top;
  T sum;
};
// exp(x) of x <= 0 for a sum whose largest term is 1: what is too small to have an exponent does not count, and an error of the argument
// weighs the less the larger it is.
FXF_INLINE float fxf_exp_below(float x) { return fxf_flushing_exp2(x * 1.4426950408889634f); }
FXF_INLINE double fxf_exp_below(double x) { return exp(x); }
template <class T>
FXF_INLINE fxf_online<T> fxf_join(fxf_online<T> a, fxf_online<T> b) {
  const T top = fxf_max(a.top, b.top);
  const T mine = a.top == top ? a.sum : a.sum * fxf_exp_below(a.top - top), other = b.top == top ? b.sum : b.sum * fxf_exp_below(b.top - top);
  return fxf_online<T>{top, mine + other};
}
template <class T>
FXF_INLINE T fxf_total(fxf_online<T> state) {
  return fxf_isinf(state.top) ? state.top - state.top : state.sum;
}

// Over groups of `Lanes` neighbouring lanes of a warp, a power of two: all lanes get the result.
template <int Lanes, class A, class Fold>
FXF_INLINE A fxf_fold_lanes(A mine, Fold fold) {
  FXF_UNROLL
  for (int mask = 1; mask < Lanes; mask *= 2) mine = fold(mine, fxf_shuffle(mine, mask));
  return mine;
}

// The first half of a fold over rows of `Lanes` threads (more than a warp): one value a warp goes to shared memory. A barrier,
// then fxf_fold_warps gives the result to all threads of the row.
template <class A, class Shared, class Fold>
FXF_INLINE void fxf_post_warp(A mine, Shared&& scratch, Fold fold) {
  mine = fxf_fold_lanes<32>(mine, fold);
  if (fxf_thread() % 32 == 0) FXF_PLACE(scratch, fxf_thread() / 32, mine);
}
template <int Lanes, class A, class Shared, class Fold>
FXF_INLINE A fxf_fold_warps(A, Shared&& scratch, Fold fold) {
  constexpr int kWarps = Lanes / 32;
  A mine = FXF_TAKE(scratch, fxf_thread() / Lanes * kWarps + fxf_thread() % kWarps);
  return fxf_fold_lanes<kWarps>(mine, fold);
}

// N values of one thread, or of one column in memory, by halves: the error grows with the logarithm of N.
template <int N, class A, class Fold>
FXF_INLINE A fxf_fold_parts(const A* part, Fold fold) {
  if constexpr (N == 1) return part[0];
  else return fold(fxf_fold_parts<N / 2>(part, fold), fxf_fold_parts<N - N / 2>(part + N / 2, fold));
}
// N values into a maximum and its sum.
template <int N, class T>
FXF_INLINE fxf_online<T> fxf_take_online(fxf_online<T> state, const T* values) {
  const T top = fxf_max(state.top, fxf_fold_parts<N>(values, [](T a, T b) { return fxf_max(a, b); }));
  const T base = fxf_isinf(top) ? (T)0 : top;
  T below[N];
  FXF_UNROLL
  for (int e = 0; e < N; ++e) below[e] = fxf_exp_below(values[e] - base);
  const T before = state.top == top ? state.sum : state.sum * fxf_exp_below(state.top - base);
  return fxf_online<T>{top, before + fxf_fold_parts<N>(below, [](T a, T b) { return a + b; })};
}
template <int N, class Get, class Fold>
FXF_INLINE auto fxf_fold_indexed(const Get& get, int first, int step, Fold fold) {
  if constexpr (N == 1) return get(first);
  else return fold(fxf_fold_indexed<N / 2>(get, first, step, fold), fxf_fold_indexed<N - N / 2>(get, first + N / 2 * step, step, fold));
}
template <int N, class Shared, class Fold>
FXF_INLINE auto fxf_fold_column(Shared&& scratch, int first, int step, Fold fold) {
  return fxf_fold_indexed<N>([&](int at) { return FXF_TAKE(scratch, at); }, first, step, fold);
}

// A fold over rows that whole blocks share, `Peers` of them: each warp's value goes to all of them, at `first` and on. When the round has
// been awaited, fxf_fold_posted gives the result of Count = Peers * Warps values to all threads, in the same order in each block.
template <class A>
struct alignas(4) fxf_posted {
  A value;
};
template <int Peers, int Warps, class A, class Shared, class Exchange, class Fold>
FXF_INLINE void fxf_post_to_peers(A mine, Shared&& scratch, Exchange&& exchange, Fold fold, int bank, int peer) {
  const fxf_posted<A> posted{fxf_fold_lanes<32>(mine, fold)};
  const int lane = fxf_thread() % 32, place = (bank * Peers + peer) * Warps + fxf_thread() / 32;
  if constexpr (Peers > 1) {
    if (lane < Peers) FXF_POST(scratch, place, posted, lane, exchange, bank);
  } else {
    if (lane == 0) FXF_PLACE(scratch, place, posted);
  }
}
template <int Count, class Shared, class Fold>
FXF_INLINE auto fxf_fold_posted(Shared&& scratch, Fold fold, int bank) {
  constexpr int kLanes = Count < 32 ? Count : 32;
  const auto posted = [&](int at) { return FXF_TAKE(scratch, bank * Count + at).value; };
  return fxf_fold_lanes<kLanes>(fxf_fold_indexed<Count / kLanes>(posted, fxf_thread() % kLanes, kLanes, fold), fold);
}
