// pointwise: index 32 bits, vector 16 (inputs 10, outputs 1), unroll 1, threads 1, grain 8192
struct Params {
  void* ptr[3];
  long long n[1];
};

extern "C" void fxfuser_pointwise_cf20c08b(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  const long long* in1 = (const long long*)p->ptr[1];
  float* out0 = (float*)p->ptr[2];
  const long long e2_offset = (long long)p->n[0];
  #pragma omp simd
  for (long long i0 = begin; i0 < end; ++i0) {
    const float v0 = fxf_get(in0, i0);
    const long long v1 = fxf_get(in1, 0);
    const long long v2 = (long long)(e2_offset);
    const long long v3 = (long long)(i0);
    const long long v4 = (long long)(fxf_random_bits(v1, v2, v3));  // philox
    const long long v5 = 3865470566LL;
    const bool v6 = v4 < v5;  // lt
    const float v7 = v0 * (v6 ? 1.0f : 0.0f);  // mul
    const float v8 = 1.1111112f;
    const float v9 = v7 * v8;  // mul
    const float v10 = 2.0f;
    const float v11 = v9 * v10;  // mul
    fxf_put(out0, i0, v11);
  }
}
