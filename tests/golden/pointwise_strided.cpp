// pointwise: index 32 bits, vector 2 (inputs 1, outputs 1), unroll 1, threads 1, grain 32768
struct Params {
  void* ptr[2];
  long long n[3];
};

extern "C" void fxfuser_pointwise_efda9f77(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long out0_stride0 = (long long)p->n[2];
  for (long long at = begin; at < end;) {
    const long long start = at % size1, outer = at / size1;
    const long long run = size1 - start < end - at ? size1 - start : end - at;
    const long long i0 = outer;
    #pragma omp simd
    for (long long i1 = start; i1 < start + run; ++i1) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v1 = 2.0f;
      const float v2 = v0 * v1;  // mul
      fxf_put(out0, i0 * out0_stride0 + i1, v2);
    }
    at += run;
  }
}
