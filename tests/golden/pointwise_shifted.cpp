// pointwise: index 32 bits, vector 1 (inputs 00, outputs 0), unroll 1, threads 1, grain 6554
struct Params {
  void* ptr[3];
  long long n[3];
};

extern "C" void fxfuser_pointwise_68105917(const Params* p, long long begin, long long end) {
  const fxf_bfloat16* in0 = (const fxf_bfloat16*)p->ptr[0];
  const fxf_bfloat16* in1 = (const fxf_bfloat16*)p->ptr[1];
  fxf_bfloat16* out0 = (fxf_bfloat16*)p->ptr[2];
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
      const float v1 = fxf_get(in1, i1);
      const float v2 = v0 + 1.0f * v1;  // add
      const float v3 = v2 * (float)(0.5f) * ((float)(1.0f) + fxf_erf(v2 * (float)(0.70710677f)));  // gelu_erf
      fxf_put(out0, i0 * out0_stride0 + i1, v3);
    }
    at += run;
  }
}
