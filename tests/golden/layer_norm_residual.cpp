// normalization: index 32 bits, vector 16 (inputs 1111, outputs 1), unroll 2, threads 1, inner multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 22
struct Params {
  void* ptr[5];
  long long n[5];
};

extern "C" void fxfuser_normalization_1ecf1d6a(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  const float* in1 = (const float*)p->ptr[1];
  const float* in2 = (const float*)p->ptr[2];
  const float* in3 = (const float*)p->ptr[3];
  float* out0 = (float*)p->ptr[4];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long e1_stride0 = (long long)p->n[2];
  const long long reduced_count = (long long)p->n[3];
  const long long out0_stride0 = (long long)p->n[4];
  for (long long item = begin; item < end; ++item) {
    const long long i0 = item;
    const float v7 = 1e-05f;
    double acc3[32];
    for (int lane = 0; lane < 32; ++lane) acc3[lane] = 0.0f;
    const auto pass0 = [&](const long long i1, double& sum3) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v1 = fxf_get(in1, i0 * e1_stride0 + i1);
      const float v2 = v0 + 1.0f * v1;  // add
      sum3 = sum3 + (v2);
    };
    long long j0 = 0;
    for (; j0 + 32 <= size1; j0 += 32) {
      for (int line = 0; line < 2; ++line) __builtin_prefetch((const char*)(in0 + i0 * e0_stride0 + (j0 + 1024)) + line * 64, 0); for (int line = 0; line < 2; ++line) __builtin_prefetch((const char*)(in1 + i0 * e1_stride0 + (j0 + 1024)) + line * 64, 0);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass0(j0 + lane, acc3[lane]);
    }
    for (int lane = 0; j0 < size1; ++j0, ++lane) pass0(j0, acc3[lane]);
    for (int lane = 0; lane < 16; ++lane) acc3[lane] = acc3[lane] + acc3[lane + 16];
    for (int lane = 0; lane < 8; ++lane) acc3[lane] = acc3[lane] + acc3[lane + 8];
    for (int lane = 0; lane < 4; ++lane) acc3[lane] = acc3[lane] + acc3[lane + 4];
    for (int lane = 0; lane < 2; ++lane) acc3[lane] = acc3[lane] + acc3[lane + 2];
    for (int lane = 0; lane < 1; ++lane) acc3[lane] = acc3[lane] + acc3[lane + 1];
    const float v3 = (float)((float)acc3[0] / (float)(double)reduced_count);  // mean
    double acc6[32];
    for (int lane = 0; lane < 32; ++lane) acc6[lane] = 0.0f;
    const auto pass1 = [&](const long long i1, double& sum6) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v1 = fxf_get(in1, i0 * e1_stride0 + i1);
      const float v2 = v0 + 1.0f * v1;  // add
      const float v4 = v2-1.0f * v3;  // sub
      const float v5 = v4 * v4;  // mul
      sum6 = sum6 + (v5);
    };
    long long j1 = 0;
    for (; j1 + 32 <= size1; j1 += 32) {
      for (int line = 0; line < 2; ++line) __builtin_prefetch((const char*)(out0 + i0 * out0_stride0 + j1) + line * 64, 1);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass1(j1 + lane, acc6[lane]);
    }
    for (int lane = 0; j1 < size1; ++j1, ++lane) pass1(j1, acc6[lane]);
    for (int lane = 0; lane < 16; ++lane) acc6[lane] = acc6[lane] + acc6[lane + 16];
    for (int lane = 0; lane < 8; ++lane) acc6[lane] = acc6[lane] + acc6[lane + 8];
    for (int lane = 0; lane < 4; ++lane) acc6[lane] = acc6[lane] + acc6[lane + 4];
    for (int lane = 0; lane < 2; ++lane) acc6[lane] = acc6[lane] + acc6[lane + 2];
    for (int lane = 0; lane < 1; ++lane) acc6[lane] = acc6[lane] + acc6[lane + 1];
    const float v6 = (float)((float)acc6[0] / (float)(double)reduced_count);  // mean
    const float v8 = v6 + 1.0f * v7;  // add
    const float v9 = fxf_rsqrt(v8);  // rsqrt
    const auto pass2 = [&](const long long i1) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v1 = fxf_get(in1, i0 * e1_stride0 + i1);
      const float v2 = v0 + 1.0f * v1;  // add
      const float v4 = v2-1.0f * v3;  // sub
      const float v10 = v4 * v9;  // mul
      const float v11 = fxf_get(in2, i1);
      const float v12 = v10 * v11;  // mul
      const float v13 = fxf_get(in3, i1);
      const float v14 = v12 + 1.0f * v13;  // add
      fxf_put(out0, i0 * out0_stride0 + i1, v14);
    };
    #pragma omp simd
    for (long long j = 0; j < size1; ++j) pass2(j);
  }
}
