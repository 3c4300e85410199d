// pointwise: index 32 bits, vector 4 (inputs 11, outputs 1), unroll 1, threads 1, grain 32768
struct Params {
  void* ptr[3];
  long long n[9];
};

extern "C" void fxfuser_pointwise_700bccaa(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  const float* in1 = (const float*)p->ptr[1];
  float* out0 = (float*)p->ptr[2];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long e0_offset = (long long)p->n[2];
  const long long e0_guard0_low = (long long)p->n[3];
  const long long e0_guard0_high = (long long)p->n[4];
  const long long e1_stride0 = (long long)p->n[5];
  const long long e1_guard0_high = (long long)p->n[6];
  const long long e2_bound0_high = (long long)p->n[7];
  const long long out0_stride0 = (long long)p->n[8];
  for (long long at = begin; at < end;) {
    const long long start = at % size1, outer = at / size1;
    const long long run = size1 - start < end - at ? size1 - start : end - at;
    const long long i0 = outer;
    #pragma omp simd
    for (long long i1 = start; i1 < start + run; ++i1) {
      const float v0 = (i1 >= e0_guard0_low && i1 < e0_guard0_high) ? fxf_get(in0, i0 * e0_stride0 + i1 + e0_offset) : (float)0;
      const float v1 = (i1 >= 0 && i1 < e1_guard0_high) ? fxf_get(in1, i0 * e1_stride0 + i1) : (float)0;
      const float v2 = (i1 >= 0 && i1 < e2_bound0_high) ? v1 : v0;
      const float v3 = 2.0f;
      const float v4 = v2 * v3;  // mul
      fxf_put(out0, i0 * out0_stride0 + i1, v4);
    }
    at += run;
  }
}
