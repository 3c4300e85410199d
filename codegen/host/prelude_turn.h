// ---- squares of a tensor turned over their diagonal

#if defined(__AVX512F__)
#define FXF_VECTOR 64
#elif defined(__AVX2__)
#define FXF_VECTOR 32
#else
#define FXF_VECTOR 16
#endif
template <int... I> struct fxf_ints {};
template <int N, int... I> struct fxf_count : fxf_count<N - 1, N - 1, I...> {};
template <int... I> struct fxf_count<0, I...> { using ints = fxf_ints<I...>; };
// The first halves of two vectors of N, element by element in turn; and the second halves.
template <int N, typename V, int... I> static inline V fxf_zip_low(V a, V b, fxf_ints<I...>) { return __builtin_shufflevector(a, b, (I % 2 * N + I / 2)...); }
template <int N, typename V, int... I> static inline V fxf_zip_high(V a, V b, fxf_ints<I...>) { return __builtin_shufflevector(a, b, (I % 2 * N + N / 2 + I / 2)...); }
template <int Bytes> struct fxf_unsigned;
template <> struct fxf_unsigned<1> { using type = unsigned char; };
template <> struct fxf_unsigned<2> { using type = unsigned short; };
template <> struct fxf_unsigned<4> { using type = unsigned; };
template <> struct fxf_unsigned<8> { using type = unsigned long long; };

// to[j * width + i] = from[i * stride + j] for i and j below N: log2(N) rounds, each of which zips row i with row i + N / 2.
template <int N, typename S> static inline __attribute__((always_inline)) void fxf_turn_square(const S* from, long long stride, S* to, long long width) {
  typedef typename fxf_unsigned<sizeof(S)>::type V __attribute__((vector_size(N * sizeof(S)), aligned(1), may_alias));
  typename fxf_count<N>::ints all;
  V rows[N], next[N];
  for (int i = 0; i < N; ++i) rows[i] = *(const V*)(from + i * stride);
  for (int round = 1; round < N; round *= 2) {
    for (int i = 0; i < N / 2; ++i) {
      next[2 * i] = fxf_zip_low<N>(rows[i], rows[i + N / 2], all);
      next[2 * i + 1] = fxf_zip_high<N>(rows[i], rows[i + N / 2], all);
    }
    for (int i = 0; i < N; ++i) rows[i] = next[i];
  }
  for (int i = 0; i < N; ++i) *(V*)(to + i * width) = rows[i];
}
// to[j * width + i] = from[i * stride + j] for i < rows, j < columns, both at most width, which is at most 64.
template <typename S> static inline void fxf_turn(const S* from, long long stride, int rows, int columns, S* to, int width) {
  constexpr int N = FXF_VECTOR / sizeof(S) < 16 ? FXF_VECTOR / sizeof(S) : 16;
  // A square of small elements takes part of a cache line, and rows a power of two apart push each other out before the next
  // square comes: whole rows are fetched first.
  S near[sizeof(S) * N < 64 ? 64 * 64 : 1];
  if (sizeof(S) * N < 64) {
    for (int i = 0; i < rows; ++i) {
#pragma omp simd
      for (int j = 0; j < columns; ++j) near[i * width + j] = from[i * stride + j];
    }
    from = near;
    stride = width;
  }
  const int whole_rows = rows / N * N, whole_columns = columns / N * N;
  for (int i = 0; i < whole_rows; i += N) {
    for (int j = 0; j < whole_columns; j += N) fxf_turn_square<N>(from + i * stride + j, stride, to + j * width + i, width);
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = i < whole_rows ? whole_columns : 0; j < columns; ++j) to[j * width + i] = from[i * stride + j];
  }
}
