// reduction: index 32 bits, vector 16 (inputs 1, outputs 0), unroll 2, threads 1, inner multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 1
struct Params {
  void* ptr[2];
  long long n[3];
};

extern "C" void fxfuser_reduction_1958b5cf(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long reduced_count = (long long)p->n[2];
  for (long long item = begin; item < end; ++item) {
    const long long i0 = item;
    const float v3 = 1e-06f;
    double acc2[32];
    for (int lane = 0; lane < 32; ++lane) acc2[lane] = 0.0f;
    const auto pass0 = [&](const long long i1, double& sum2) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v1 = v0 * v0;  // mul
      sum2 = sum2 + (v1);
    };
    long long j0 = 0;
    for (; j0 + 32 <= size1; j0 += 32) {
      for (int line = 0; line < 2; ++line) __builtin_prefetch((const char*)(in0 + i0 * e0_stride0 + (j0 + 1024)) + line * 64, 0);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass0(j0 + lane, acc2[lane]);
    }
    for (int lane = 0; j0 < size1; ++j0, ++lane) pass0(j0, acc2[lane]);
    for (int lane = 0; lane < 16; ++lane) acc2[lane] = acc2[lane] + acc2[lane + 16];
    for (int lane = 0; lane < 8; ++lane) acc2[lane] = acc2[lane] + acc2[lane + 8];
    for (int lane = 0; lane < 4; ++lane) acc2[lane] = acc2[lane] + acc2[lane + 4];
    for (int lane = 0; lane < 2; ++lane) acc2[lane] = acc2[lane] + acc2[lane + 2];
    for (int lane = 0; lane < 1; ++lane) acc2[lane] = acc2[lane] + acc2[lane + 1];
    const float v2 = (float)((float)acc2[0] / (float)(double)reduced_count);  // mean
    const float v4 = v2 + 1.0f * v3;  // add
    const float v5 = fxf_rsqrt(v4);  // rsqrt
    fxf_put(out0, i0, v5);
  }
}

// pointwise: index 32 bits, vector 16 (inputs 101, outputs 1), unroll 1, threads 1, grain 32768
struct Params {
  void* ptr[4];
  long long n[3];
};

extern "C" void fxfuser_pointwise_e543cb2a(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  const float* in1 = (const float*)p->ptr[1];
  const float* in2 = (const float*)p->ptr[2];
  float* out0 = (float*)p->ptr[3];
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
      const float v1 = fxf_get(in1, i0);
      const float v2 = v0 * v1;  // mul
      const float v3 = fxf_get(in2, i1);
      const float v4 = v2 * v3;  // mul
      fxf_put(out0, i0 * out0_stride0 + i1, v4);
    }
    at += run;
  }
}
