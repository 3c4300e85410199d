// The functions that rows may name, on the register types. Single precision is the device library's (2 ulp or better).

#define FXF_MATH1(name)                                           \
  FXF_INLINE float fxf_##name(float x) { return name##f(x); }     \
  FXF_INLINE double fxf_##name(double x) { return name(x); }
#define FXF_MATH2(name)                                                        \
  FXF_INLINE float fxf_##name(float x, float y) { return name##f(x, y); }      \
  FXF_INLINE double fxf_##name(double x, double y) { return name(x, y); }
FXF_MATH1(acos) FXF_MATH1(acosh) FXF_MATH1(asin) FXF_MATH1(asinh) FXF_MATH1(atan) FXF_MATH1(atanh) FXF_MATH1(cos)
FXF_MATH1(cosh) FXF_MATH1(erf) FXF_MATH1(erfc) FXF_MATH1(erfinv) FXF_MATH1(exp) FXF_MATH1(exp2) FXF_MATH1(expm1)
FXF_MATH1(lgamma) FXF_MATH1(log) FXF_MATH1(log10) FXF_MATH1(log1p) FXF_MATH1(log2) FXF_MATH1(rsqrt) FXF_MATH1(sin)
FXF_MATH1(sinh) FXF_MATH1(sqrt) FXF_MATH1(tan) FXF_MATH1(tanh)
FXF_MATH2(atan2) FXF_MATH2(copysign) FXF_MATH2(fmod) FXF_MATH2(hypot) FXF_MATH2(nextafter)
#undef FXF_MATH1
#undef FXF_MATH2

// Rounding, signs and classes: for integers the value itself, or what follows from it.
#define FXF_ROUNDING(name)                                        \
  FXF_INLINE float fxf_##name(float x) { return name##f(x); }     \
  FXF_INLINE double fxf_##name(double x) { return name(x); }      \
  template <class T>                                              \
  FXF_INLINE T fxf_##name(T x) { return x; }
FXF_ROUNDING(ceil) FXF_ROUNDING(floor) FXF_ROUNDING(rint) FXF_ROUNDING(trunc)
#undef FXF_ROUNDING

FXF_INLINE float fxf_abs(float x) { return fabsf(x); }
FXF_INLINE double fxf_abs(double x) { return fabs(x); }
FXF_INLINE unsigned char fxf_abs(unsigned char x) { return x; }
FXF_INLINE bool fxf_abs(bool x) { return x; }
template <class T>
FXF_INLINE T fxf_abs(T x) { return x < 0 ? (T)(0ull - (unsigned long long)x) : x; }

template <class T>
FXF_INLINE T fxf_sign(T x) { return (T)((int)(T(0) < x) - (int)(x < T(0))); }
FXF_INLINE float fxf_frac(float x) { return x - truncf(x); }
FXF_INLINE double fxf_frac(double x) { return x - trunc(x); }
FXF_INLINE bool fxf_signbit(float x) { return (fxf_bits(x) >> 31) != 0; }
FXF_INLINE bool fxf_signbit(double x) { return copysign(1.0, x) < 0; }
template <class T>
FXF_INLINE bool fxf_signbit(T x) { return x < T(0); }
template <class T>
FXF_INLINE bool fxf_isnan(T x) { return x != x; }
template <class T>
FXF_INLINE bool fxf_isinf(T) { return false; }
FXF_INLINE bool fxf_isinf(float x) { return fabsf(x) == FXF_INF_F; }
FXF_INLINE bool fxf_isinf(double x) { return fabs(x) == FXF_INF_D; }
template <class T>
FXF_INLINE bool fxf_isfinite(T) { return true; }
FXF_INLINE bool fxf_isfinite(float x) { return fabsf(x) < FXF_INF_F; }
FXF_INLINE bool fxf_isfinite(double x) { return fabs(x) < FXF_INF_D; }

// max and min hand a NaN on, fmax and fmin ignore it.
template <class T>
FXF_INLINE T fxf_max(T a, T b) { return a < b || b != b ? b : a; }
template <class T>
FXF_INLINE T fxf_min(T a, T b) { return b < a || b != b ? b : a; }
FXF_INLINE float fxf_max(float a, float b) { return fxf_nan_max(a, b); }
FXF_INLINE float fxf_min(float a, float b) { return fxf_nan_min(a, b); }
template <class T>
FXF_INLINE T fxf_fmax(T a, T b) { return a != a || a < b ? b : a; }
template <class T>
FXF_INLINE T fxf_fmin(T a, T b) { return a != a || b < a ? b : a; }

// The divisor is 1 or more: division has no case that needs care but the largest ones, where a quarter keeps the reciprocal normal.
FXF_INLINE float fxf_sigmoid(float x) {
  const float quarter = 0.25f + 0.25f * expf(-x), near = fxf_flushing_reciprocal(quarter);
  return quarter == FXF_INF_F ? 0.0f : (near + near * (1.0f - quarter * near)) * 0.25f;
}
FXF_INLINE double fxf_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

// For results that are then rounded to 16 bits: by the approximations of the machine. In double they are the functions themselves.
#define FXF_NARROW(name, of) FXF_INLINE double fxf_narrow_##name(double x) { return of; }
FXF_NARROW(exp, exp(x)) FXF_NARROW(exp2, exp2(x)) FXF_NARROW(sigmoid, fxf_sigmoid(x)) FXF_NARROW(sqrt, sqrt(x))
FXF_NARROW(gelu, x * 0.5 * (1.0 + erf(x * 0.70710678118654752440)))
FXF_NARROW(gelu_slope, 0.5 * (1.0 + erf(x * 0.70710678118654752440)) + x * exp(x * x * -0.5) * 0.39894228040143267794)
#undef FXF_NARROW
FXF_INLINE double fxf_narrow_div(double a, double b) { return a / b; }
FXF_INLINE float fxf_square(float x) { return x * x; }
// The square of the root: results below 2^-126 are not flushed.
FXF_INLINE float fxf_narrow_exp2(float x) { return fxf_square(fxf_flushing_exp2(x * 0.5f)); }
FXF_INLINE float fxf_narrow_exp(float x) { return fxf_square(fxf_flushing_exp2(x * 0.72134752f)); }
// Both are scaled where the divisor or its reciprocal is below 2^-126. What depends on the divisor alone is computed once a row
// where that is a row's value.
FXF_INLINE float fxf_narrow_div(float a, float b) {
  const float size = fabsf(b);
  const float up = size < 1.17549435e-38f ? 16777216.0f : 1.0f, scale = size > 4.2535296e37f ? 0.0625f : up;
  return (a * scale) * fxf_flushing_reciprocal(b * scale);
}
FXF_INLINE float fxf_narrow_sqrt(float x) { return fxf_approx_sqrt(x); }
FXF_INLINE float fxf_narrow_sigmoid(float x) { return fxf_narrow_div(1.0f, 1.0f + fxf_flushing_exp2(x * -1.4426950408889634f)); }
// The normal distribution below -|z|, given the bell exp(-z^2/2) (Abramowitz and Stegun, 7.1.26: within 1e-7, and within 1e-4 of
// itself where it is small).
FXF_INLINE float fxf_narrow_tail(float z, float bell) {
  const float t = fxf_flushing_reciprocal(1.0f + 0.23164190f * fabsf(z));
  float p = 0.5307027145f;
  p = p * t - 0.7265760135f;
  p = p * t + 0.7107068705f;
  p = p * t - 0.142248368f;
  p = p * t + 0.127414796f;
  return p * t * bell;
}
FXF_INLINE float fxf_narrow_gelu(float z) {
  const float tail = fxf_narrow_tail(z, fxf_flushing_exp2(z * z * -0.72134752f));
  return z * (z > 0.0f ? 1.0f - tail : tail);
}
// Not flushed: an infinite gradient times a slope of 0 would be NaN.
FXF_INLINE float fxf_narrow_gelu_slope(float z) {
  const float bell = fxf_square(fxf_flushing_exp2(z * z * -0.36067376f));
  const float tail = fxf_narrow_tail(z, bell);
  return (z > 0.0f ? 1.0f - tail : tail) + z * bell * 0.39894228f;
}

// Integer arithmetic wraps, and no divisor traps.
template <class T>
FXF_INLINE T fxf_negate(T x) { return (T)(0ull - (unsigned long long)x); }
template <class T>
FXF_INLINE T fxf_div_trunc(T a, T b) { return b == T(0) ? T(0) : b == (T)-1 ? (T(-1) < T(0) ? fxf_negate(a) : (T)(a / b)) : (T)(a / b); }
template <class T>
FXF_INLINE T fxf_fmod(T a, T b) { return b == T(0) || (T(-1) < T(0) && b == (T)-1) ? T(0) : (T)(a % b); }
template <class T>
FXF_INLINE T fxf_remainder(T a, T b) {
  const T rest = fxf_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}
template <class T>
FXF_INLINE T fxf_div_floor(T a, T b) {
  const T quotient = fxf_div_trunc(a, b), rest = fxf_fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? (T)(quotient - 1) : quotient;
}
FXF_INLINE float fxf_div_trunc(float a, float b) { return truncf(a / b); }
FXF_INLINE double fxf_div_trunc(double a, double b) { return trunc(a / b); }

// The sign of the divisor, as in Python.
template <class F>
FXF_INLINE F fxf_float_remainder(F a, F b) {
  const F rest = fxf_fmod(a, b);
  return rest != F(0) && (rest < F(0)) != (b < F(0)) ? rest + b : rest;
}
FXF_INLINE float fxf_remainder(float a, float b) { return fxf_float_remainder(a, b); }
FXF_INLINE double fxf_remainder(double a, double b) { return fxf_float_remainder(a, b); }

// Floor of the exact quotient: a - fmod is a multiple of b, so one rounding is left, which may miss by one.
template <class F>
FXF_INLINE F fxf_float_div_floor(F a, F b) {
  if (b == F(0)) return a / b;
  const F rest = fxf_fmod(a, b);
  F quotient = (a - rest) / b;
  if (rest != F(0) && (rest < F(0)) != (b < F(0))) quotient -= F(1);
  if (quotient == F(0)) return fxf_copysign(F(0), a / b);
  const F whole = fxf_floor(quotient);
  return quotient - whole > F(0.5) ? whole + F(1) : whole;
}
FXF_INLINE float fxf_div_floor(float a, float b) { return fxf_float_div_floor(a, b); }
FXF_INLINE double fxf_div_floor(double a, double b) { return fxf_float_div_floor(a, b); }

// Shifts by too much, or by less than nothing, leave nothing but the sign.
template <class T>
FXF_INLINE T fxf_shl(T a, T by) {
  return by < T(0) || (int)by >= (int)sizeof(T) * 8 ? T(0) : (T)((unsigned long long)a << (int)by);
}
template <class T>
FXF_INLINE T fxf_shr(T a, T by) {
  if (by < T(0) || by >= (T)(sizeof(T) * 8)) return a < T(0) ? (T)-1 : T(0);
  return (T)(a >> (int)by);
}

FXF_INLINE float fxf_pow(float a, float b) { return powf(a, b); }
FXF_INLINE double fxf_pow(double a, double b) { return pow(a, b); }
template <class T>
FXF_INLINE T fxf_pow(T base, T exponent) {
  if (exponent < T(0)) {
    if (base == T(1)) return T(1);
    return base == (T)-1 ? (exponent % 2 == 0 ? T(1) : (T)-1) : T(0);
  }
  unsigned long long result = 1, square = (unsigned long long)base;
  for (unsigned long long e = (unsigned long long)exponent; e != 0; e >>= 1) {
    if (e & 1) result *= square;
    square *= square;
  }
  return (T)result;
}

// Reflection to the positive side, recurrence up to 10, asymptotic series.
FXF_INLINE double fxf_digamma(double x) {
  if (x == 0.0) return copysign(FXF_INF_D, -x);
  double shift = 0.0;
  if (x < 0.0) {
    if (x == floor(x)) return FXF_NAN_D;
    const double part = x - trunc(x);
    shift = -3.14159265358979323846 / tan(3.14159265358979323846 * part);
    x = 1.0 - x;
  }
  while (x < 10.0) {
    shift -= 1.0 / x;
    x += 1.0;
  }
  const double z = 1.0 / (x * x);
  const double series = z * (1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return shift + log(x) - 0.5 / x - series;
}
FXF_INLINE float fxf_digamma(float x) { return (float)fxf_digamma((double)x); }
