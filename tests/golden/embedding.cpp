// pointwise: index 32 bits, vector 16 (inputs 01, outputs 1), unroll 1, threads 1, grain 32768
struct Params {
  void* ptr[3];
  long long n[4];
};

extern "C" void fxfuser_pointwise_f201149c(const Params* p, long long begin, long long end) {
  const long long* in0 = (const long long*)p->ptr[0];
  const float* in1 = (const float*)p->ptr[1];
  float* out0 = (float*)p->ptr[2];
  const long long size1 = (long long)p->n[0];
  const long long e1_index0_extent = (long long)p->n[1];
  const long long e1_index0_stride = (long long)p->n[2];
  const long long out0_stride0 = (long long)p->n[3];
  for (long long at = begin; at < end;) {
    const long long start = at % size1, outer = at / size1;
    const long long run = size1 - start < end - at ? size1 - start : end - at;
    const long long i0 = outer;
    #pragma omp simd
    for (long long i1 = start; i1 < start + run; ++i1) {
      const long long v0 = fxf_get(in0, i0);
      const float v1 = fxf_get(in1, i1 + fxf_wrap((long long)v0, e1_index0_extent) * e1_index0_stride);
      const float v2 = 2.0f;
      const float v3 = v1 * v2;  // mul
      fxf_put(out0, i0 * out0_stride0 + i1, v3);
    }
    at += run;
  }
}
