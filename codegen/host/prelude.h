// The host prelude: what every generated host kernel is compiled behind. No header, no standard library; float functions are
// branch-free so that loops over them vectorise, double ones and the rare ones call libm.

#define FXF_INF_F __builtin_inff()
#define FXF_NAN_F __builtin_nanf("")
#define FXF_INF_D __builtin_inf()
#define FXF_NAN_D __builtin_nan("")

struct fxf_half { unsigned short bits; };
struct fxf_bfloat16 { unsigned short bits; };
struct fxf_float8_e4m3 { unsigned char bits; };
struct fxf_float8_e5m2 { unsigned char bits; };

template <typename To, typename From>
static inline To fxf_bits(From from) { return __builtin_bit_cast(To, from); }

// ---- 16-bit and 8-bit storage

static inline float fxf_widen(fxf_bfloat16 x) { return fxf_bits<float>((unsigned)x.bits << 16); }
static inline float fxf_widen(fxf_half x) {
  const unsigned magnitude = x.bits & 0x7fffu;
  // The exponent bias differs by 112: a multiplication moves it and makes subnormals right on the way.
  const unsigned moved = fxf_bits<unsigned>(fxf_bits<float>(magnitude << 13) * 0x1p112f);
  const unsigned wide = magnitude >= 0x7c00u ? moved | 0x7f800000u : moved;
  return fxf_bits<float>(wide | ((unsigned)(x.bits & 0x8000u) << 16));
}
static inline unsigned short fxf_to_bfloat16_bits(float x) {
  const unsigned bits = fxf_bits<unsigned>(x);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (unsigned short)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}
static inline unsigned short fxf_to_half_bits(float x) {
  const unsigned bits = fxf_bits<unsigned>(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  // Normal results: rebias and round to nearest even on the 13 bits that go. Small ones: adding 0.5 aligns the last place.
  const unsigned normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const unsigned tiny = fxf_bits<unsigned>(fxf_bits<float>(magnitude) + 0.5f) - 0x3f000000u;
  unsigned out = magnitude < 0x38800000u ? tiny : normal;
  out = magnitude >= 0x477ff000u ? 0x7c00u : out;
  out = magnitude > 0x7f800000u ? 0x7e00u : out;
  return (unsigned short)(out | sign);
}
// An 8-bit float of `mantissa` bits and exponent bias `bias`; `top` is the largest finite pattern, `over` what lies beyond it.
static inline unsigned char fxf_to_small_bits(float x, int mantissa, int bias, unsigned top, unsigned over, unsigned nan) {
  const unsigned bits = fxf_bits<unsigned>(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (unsigned char)(sign | nan);
  const int shift = 23 - mantissa;
  const unsigned smallest = (unsigned)(128 - bias) << 23;  // the smallest normal
  unsigned out;
  if (magnitude >= smallest) {
    const unsigned rebased = magnitude - ((unsigned)(127 - bias) << 23);
    out = (rebased + ((1u << (shift - 1)) - 1) + ((rebased >> shift) & 1u)) >> shift;
  } else {
    const float magic = fxf_bits<float>((unsigned)(128 - bias + shift) << 23);
    out = fxf_bits<unsigned>(fxf_bits<float>(magnitude) + magic) - fxf_bits<unsigned>(magic);
  }
  return (unsigned char)(sign | (out > top ? over : out));
}
static inline float fxf_from_small_bits(unsigned bits, int mantissa, int bias) {
  const unsigned magnitude = bits & 0x7fu;
  const float scale = fxf_bits<float>((unsigned)(127 + 127 - bias) << 23);
  return fxf_bits<float>(magnitude << (23 - mantissa)) * scale * (bits & 0x80u ? -1.0f : 1.0f);
}
static inline float fxf_widen(fxf_float8_e4m3 x) { return (x.bits & 0x7f) == 0x7f ? FXF_NAN_F : fxf_from_small_bits(x.bits, 3, 7); }
static inline float fxf_widen(fxf_float8_e5m2 x) {
  const unsigned magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7c) return x.bits & 0x80 ? -FXF_INF_F : FXF_INF_F;
  return magnitude > 0x7c ? FXF_NAN_F : fxf_from_small_bits(x.bits, 2, 15);
}
static inline unsigned char fxf_to_e4m3_bits(float x) { return fxf_to_small_bits(x, 3, 7, 0x7e, 0x7f, 0x7f); }
static inline unsigned char fxf_to_e5m2_bits(float x) { return fxf_to_small_bits(x, 2, 15, 0x7b, 0x7c, 0x7f); }

static inline float fxf_round_half(float x) { return fxf_widen(fxf_half{fxf_to_half_bits(x)}); }
static inline float fxf_round_bfloat16(float x) { return fxf_widen(fxf_bfloat16{fxf_to_bfloat16_bits(x)}); }
static inline float fxf_round_float8_e4m3(float x) { return fxf_widen(fxf_float8_e4m3{fxf_to_e4m3_bits(x)}); }
static inline float fxf_round_float8_e5m2(float x) { return fxf_widen(fxf_float8_e5m2{fxf_to_e5m2_bits(x)}); }

// ---- loads and stores

template <typename S> static inline S fxf_get(const S* p, long long i) { return p[i]; }
static inline bool fxf_get(const bool* p, long long i) { return ((const unsigned char*)p)[i] != 0; }
static inline float fxf_get(const fxf_half* p, long long i) { return fxf_widen(p[i]); }
static inline float fxf_get(const fxf_bfloat16* p, long long i) { return fxf_widen(p[i]); }
static inline float fxf_get(const fxf_float8_e4m3* p, long long i) { return fxf_widen(p[i]); }
static inline float fxf_get(const fxf_float8_e5m2* p, long long i) { return fxf_widen(p[i]); }
template <typename S> static inline void fxf_put(S* p, long long i, S v) { p[i] = v; }
static inline void fxf_put(fxf_half* p, long long i, float v) { p[i].bits = fxf_to_half_bits(v); }
static inline void fxf_put(fxf_bfloat16* p, long long i, float v) { p[i].bits = fxf_to_bfloat16_bits(v); }
static inline void fxf_put(fxf_float8_e4m3* p, long long i, float v) { p[i].bits = fxf_to_e4m3_bits(v); }
static inline void fxf_put(fxf_float8_e5m2* p, long long i, float v) { p[i].bits = fxf_to_e5m2_bits(v); }
// An index as eager reads it: negative ones count from the end; anything else outside is kept inside.
static inline long long fxf_wrap(long long i, long long extent) {
  const long long at = i < 0 ? i + extent : i;
  return at < 0 ? 0 : at >= extent ? extent - 1 : at;
}

// ---- rounding and signs

static inline float fxf_abs(float x) { return __builtin_fabsf(x); }
static inline double fxf_abs(double x) { return __builtin_fabs(x); }
template <typename T> static inline T fxf_abs(T x) { return x < 0 ? (T)(0 - (unsigned long long)x) : x; }
static inline bool fxf_abs(bool x) { return x; }
#define FXF_BOTH(name, single, wide)                             \
  static inline float fxf_##name(float x) { return single(x); }  \
  static inline double fxf_##name(double x) { return wide(x); }
FXF_BOTH(ceil, __builtin_ceilf, __builtin_ceil)
FXF_BOTH(floor, __builtin_floorf, __builtin_floor)
FXF_BOTH(rint, __builtin_rintf, __builtin_rint)
FXF_BOTH(trunc, __builtin_truncf, __builtin_trunc)
FXF_BOTH(sqrt, __builtin_sqrtf, __builtin_sqrt)
#define FXF_WHOLE(name) template <typename T> static inline T fxf_##name(T x) { return x; }
FXF_WHOLE(ceil) FXF_WHOLE(floor) FXF_WHOLE(rint) FXF_WHOLE(trunc)
static inline float fxf_frac(float x) { return x - __builtin_truncf(x); }
static inline double fxf_frac(double x) { return x - __builtin_trunc(x); }
static inline float fxf_copysign(float x, float y) { return __builtin_copysignf(x, y); }
static inline double fxf_copysign(double x, double y) { return __builtin_copysign(x, y); }
template <typename T> static inline T fxf_sign(T x) { return (T)((x > (T)0) - (x < (T)0)); }
static inline bool fxf_sign(bool x) { return x; }
static inline bool fxf_signbit(float x) { return (fxf_bits<unsigned>(x) >> 31) != 0; }
static inline bool fxf_signbit(double x) { return (fxf_bits<unsigned long long>(x) >> 63) != 0; }
template <typename T> static inline bool fxf_signbit(T x) { return x < 0; }
template <typename T> static inline bool fxf_isnan(T x) { return x != x; }
static inline bool fxf_isinf(float x) { return __builtin_fabsf(x) == FXF_INF_F; }
static inline bool fxf_isinf(double x) { return __builtin_fabs(x) == FXF_INF_D; }
template <typename T> static inline bool fxf_isinf(T) { return false; }
static inline bool fxf_isfinite(float x) { return __builtin_fabsf(x) < FXF_INF_F; }
static inline bool fxf_isfinite(double x) { return __builtin_fabs(x) < FXF_INF_D; }
template <typename T> static inline bool fxf_isfinite(T) { return true; }

// max and min pass NaN on, fmax and fmin don't.
template <typename T> static inline T fxf_max(T a, T b) { return a < b || b != b ? b : a; }
template <typename T> static inline T fxf_min(T a, T b) { return b < a || b != b ? b : a; }
template <typename T> static inline T fxf_fmax(T a, T b) { return a >= b || b != b ? a : b; }
template <typename T> static inline T fxf_fmin(T a, T b) { return a <= b || b != b ? a : b; }

// ---- float functions that vectorise

// Adding it to a float below 2^22 leaves the nearest whole number in the low bits.
#define FXF_MAGIC 12582912.0f
// 2^n * x for n in [-252, 254] that FXF_MAGIC was added to, in two steps so that subnormal results are right.
static inline float fxf_scale(float x, float moved) {
  const int whole = (int)(fxf_bits<unsigned>(moved) - fxf_bits<unsigned>(FXF_MAGIC)), half = whole >> 1;
  return x * fxf_bits<float>((unsigned)(127 + half) << 23) * fxf_bits<float>((unsigned)(127 + whole - half) << 23);
}
// e^r on |r| <= ln(2)/2.
static inline float fxf_exp_core(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r + 1.0f;
}
// A NaN passes through both: whatever it is scaled by.
static inline float fxf_exp(float x) {
  const float clamped = x > 90.0f ? 90.0f : x < -110.0f ? -110.0f : x;
  const float moved = clamped * 1.44269504088896341f + FXF_MAGIC, n = moved - FXF_MAGIC;
  return fxf_scale(fxf_exp_core((clamped - n * 0.693359375f) - n * -2.12194440e-4f), moved);
}
static inline float fxf_exp2(float x) {
  const float clamped = x > 130.0f ? 130.0f : x < -152.0f ? -152.0f : x;
  const float moved = clamped + FXF_MAGIC;
  return fxf_scale(fxf_exp_core((clamped - (moved - FXF_MAGIC)) * 0.693147180559945309f), moved);
}
static inline float fxf_sigmoid(float x) { return 1.0f / (1.0f + fxf_exp(-x)); }
static inline float fxf_log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const unsigned bits = fxf_bits<unsigned>(tiny ? x * 8388608.0f : x);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const int up = (int)(bits - 0x3f3504f3u) >> 23;
  const float m = fxf_bits<float>(bits - ((unsigned)up << 23)) - 1.0f;
  const float e = (float)up - (tiny ? 23.0f : 0.0f);
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float z = m * m;
  const float y = m * z * p + e * -2.12194440e-4f - 0.5f * z;
  float out = m + y + e * 0.693359375f;
  out = x == 0.0f ? -FXF_INF_F : out;
  out = x == FXF_INF_F ? x : out;
  return x < 0.0f || x != x ? FXF_NAN_F : out;
}
static inline float fxf_tanh(float x) {
  const float a = __builtin_fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x;
  const float large = 1.0f - 2.0f / (fxf_exp(2.0f * a) + 1.0f);
  return __builtin_copysignf(a < 0.625f ? small : large, x);
}
// erf by a polynomial in x^2 below 0.84, else as 1 - exp(t * q(t)), which is 1 in float beyond 3.95.
static inline float fxf_erf(float x) {
  const float a = __builtin_fabsf(x), t = a > 3.95f ? 3.95f : a, z = x * x;
  float p = -6.33736665e-4f;
  p = p * z + 5.05472301e-3f;
  p = p * z - 2.68045999e-2f;
  p = p * z + 1.12827644e-1f;
  p = p * z - 3.76125753e-1f;
  p = p * z + 1.28379166e-1f;
  const float small = p * x + x;
  float q = -6.4638002e-6f;
  q = q * t + 6.3865082e-5f;
  q = q * t - 4.1970208e-5f;
  q = q * t - 2.6817964e-3f;
  q = q * t + 2.2279855e-2f;
  q = q * t - 1.0489620e-1f;
  q = q * t - 6.3581008e-1f;
  q = q * t - 1.28512740e-1f;
  // The exponent lies in [-17.5, -1.4]: neither clamps nor two steps.
  const float y = q * t - t, moved = y * 1.44269504088896341f + FXF_MAGIC, n = moved - FXF_MAGIC;
  const float core = fxf_exp_core((y - n * 0.693359375f) - n * -2.12194440e-4f);
  const float rest = core * fxf_bits<float>((fxf_bits<unsigned>(moved) - fxf_bits<unsigned>(FXF_MAGIC) + 127u) << 23);
  return a < 0.84f ? small : __builtin_copysignf(1.0f - rest, x);
}
static inline float fxf_rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double fxf_rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
static inline double fxf_sigmoid(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }

// Names of the CUDA prelude for results that are rounded to 16 bits; here the exact functions are as good.
#define FXF_NARROW(name, of) template <typename T> static inline T fxf_narrow_##name(T x) { return of; }

// ---- libm

extern "C" {
double exp(double); double exp2(double); double log(double); double tanh(double); double erf(double);
}
static inline double fxf_exp(double x) { return exp(x); }
static inline double fxf_exp2(double x) { return exp2(x); }
static inline double fxf_log(double x) { return log(x); }
static inline double fxf_tanh(double x) { return tanh(x); }
static inline double fxf_erf(double x) { return erf(x); }
static inline double fxf_sin(double x) { return __builtin_sin(x); }
static inline double fxf_cos(double x) { return __builtin_cos(x); }
FXF_NARROW(exp, fxf_exp(x)) FXF_NARROW(exp2, fxf_exp2(x)) FXF_NARROW(sigmoid, fxf_sigmoid(x)) FXF_NARROW(sqrt, fxf_sqrt(x))
FXF_NARROW(gelu, x * T(0.5) * (T(1) + fxf_erf(x * T(0.70710678118654752440))))
FXF_NARROW(gelu_slope, T(0.5) * (T(1) + fxf_erf(x * T(0.70710678118654752440))) + x * fxf_exp(x * x * T(-0.5)) * T(0.39894228040143267794))
template <typename T> static inline T fxf_narrow_div(T a, T b) { return a / b; }
#define FXF_LIBM(name) FXF_BOTH(name, __builtin_##name##f, __builtin_##name)
FXF_LIBM(acos) FXF_LIBM(acosh) FXF_LIBM(asin) FXF_LIBM(asinh) FXF_LIBM(atan) FXF_LIBM(atanh) FXF_LIBM(cosh)
FXF_LIBM(erfc) FXF_LIBM(expm1) FXF_LIBM(lgamma) FXF_LIBM(log10) FXF_LIBM(log1p) FXF_LIBM(log2) FXF_LIBM(sinh)
FXF_LIBM(tan)
#define FXF_LIBM2(name)                                                                            \
  static inline float fxf_##name(float x, float y) { return __builtin_##name##f(x, y); }           \
  static inline double fxf_##name(double x, double y) { return __builtin_##name(x, y); }
// The remainder is exact. Of eager's code the vector loop gives NaN where the quotient is too large for the type, the rest of a loop not.
FXF_LIBM2(atan2) FXF_LIBM2(fmod) FXF_LIBM2(hypot) FXF_LIBM2(nextafter) FXF_LIBM2(pow)

// psi(x): reflection for negative arguments, recurrence up to 10, then the asymptotic series.
static inline double fxf_digamma(double x) {
  if (x == 0) return __builtin_copysign(FXF_INF_D, -x);
  double out = 0;
  if (x < 0) {
    if (x == __builtin_trunc(x)) return FXF_NAN_D;
    out = -3.14159265358979323846 / __builtin_tan(3.14159265358979323846 * __builtin_fmod(x, 1.0));
    x = 1 - x;
  }
  for (; x < 10; x += 1) out -= 1 / x;
  const double y = 1 / (x * x);
  return out + __builtin_log(x) - 0.5 / x -
         y * (8.33333333333333333e-2 - y * (8.33333333333333333e-3 - y * (3.96825396825396825e-3 - y * (4.16666666666666667e-3 - y * 7.57575757575757576e-3))));
}
static inline float fxf_digamma(float x) { return (float)fxf_digamma((double)x); }
// erf^-1 by Winitzki's form and three Newton steps.
static inline double fxf_erfinv(double x) {
  if (!(x > -1 && x < 1)) return x == 1 ? FXF_INF_D : x == -1 ? -FXF_INF_D : FXF_NAN_D;
  const double l = __builtin_log1p(-x * x), t = 4.330746750799873 + l / 2;
  double y = __builtin_copysign(__builtin_sqrt(__builtin_sqrt(t * t - l / 0.147) - t), x);
  for (int step = 0; step < 3; ++step) {
    const double beyond = 1 - __builtin_fabs(x) - __builtin_erfc(__builtin_fabs(y));  // exact where erf(y) is near 1
    const double error = x < 0.5 && x > -0.5 ? erf(y) - x : x < 0 ? -beyond : beyond;
    y -= error / (1.1283791670955126 * exp(-y * y));
  }
  return y;
}
static inline float fxf_erfinv(float x) { return (float)fxf_erfinv((double)x); }

// ---- division by eager's rules; an integer division by zero gives 0 and never traps

template <typename T> static inline bool fxf_no_quotient(T a, T b) { return b == 0 || (b == (T)-1 && a == (T)(0 - (unsigned long long)a)); }
template <typename T> static inline T fxf_div_trunc(T a, T b) { return fxf_no_quotient(a, b) ? (b == 0 ? (T)0 : (T)(0 - (unsigned long long)a)) : (T)(a / b); }
template <typename T> static inline T fxf_div_floor(T a, T b) {
  if (fxf_no_quotient(a, b)) return fxf_div_trunc(a, b);
  const T q = (T)(a / b);
  return (T)(q - (a % b != 0 && ((a < 0) != (b < 0))));
}
template <typename T> static inline T fxf_remainder(T a, T b) {
  if (fxf_no_quotient(a, b)) return 0;
  const T r = (T)(a % b);
  return (T)(r != 0 && ((r < 0) != (b < 0)) ? r + b : r);
}
template <typename T> static inline T fxf_fmod(T a, T b) { return fxf_no_quotient(a, b) ? (T)0 : (T)(a % b); }
#define FXF_DIVISION(F)                                                                   \
  static inline F fxf_div_trunc(F a, F b) { return fxf_trunc(a / b); }                                  \
  static inline F fxf_remainder(F a, F b) {                                                             \
    const F r = fxf_fmod(a, b);                                                                         \
    return r != 0 && ((b < 0) != (r < 0)) ? r + b : r;                                                  \
  }                                                                                                     \
  static inline F fxf_div_floor(F a, F b) {                                                             \
    if (b == 0) return a / b;                                                                           \
    const F r = fxf_fmod(a, b);                                                                         \
    F q = (a - r) / b;                                                                                  \
    if (r != 0 && ((b < 0) != (r < 0))) q -= 1;                                                         \
    if (q == 0) return fxf_copysign((F)0, a / b);                                                       \
    const F whole = fxf_floor(q);                                                                       \
    return q - whole > (F)0.5 ? whole + 1 : whole;                                                      \
  }
FXF_DIVISION(float)
FXF_DIVISION(double)
template <typename T> static inline T fxf_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? (T)1 : base == (T)-1 ? (exponent % 2 == 0 ? (T)1 : (T)-1) : (T)0;
  unsigned long long out = 1, factor = (unsigned long long)base;
  for (T rest = exponent; rest > 0; rest = (T)(rest / 2), factor *= factor) out *= rest % 2 != 0 ? factor : 1;
  return (T)out;
}
template <typename T> static inline T fxf_shl(T a, T b) { return b < 0 || b >= (T)(8 * sizeof(T)) ? (T)0 : (T)((unsigned long long)a << b); }
template <typename T> static inline T fxf_shr(T a, T b) {
  const T most = (T)(8 * sizeof(T) - 1);
  const bool within = !(b < 0 || b > most);
  return within ? (T)(a >> (within ? b : (T)0)) : a < 0 ? (T)-1 : (T)0;
}
