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
