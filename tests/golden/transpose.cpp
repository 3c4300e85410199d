// pointwise: index 32 bits, vector 16 (inputs 1, outputs 1), unroll 1, threads 1, grain 32768
struct Params {
  void* ptr[2];
};

extern "C" void fxfuser_pointwise_e6c323e4(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  #pragma omp simd
  for (long long i0 = begin; i0 < end; ++i0) {
    const float v0 = fxf_get(in0, i0);
    const float v1 = 2.0f;
    const float v2 = v0 * v1;  // mul
    fxf_put(out0, i0, v2);
  }
}
