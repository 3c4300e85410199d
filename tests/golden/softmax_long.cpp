// normalization: index 32 bits, vector 16 (inputs 1, outputs 1), unroll 2, threads 1, inner multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 1
struct Params {
  void* ptr[2];
  long long n[4];
};

extern "C" void fxfuser_normalization_eb28f9f7(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long reduced_count = (long long)p->n[2];
  const long long out0_stride0 = (long long)p->n[3];
  for (long long item = begin; item < end; ++item) {
    const long long i0 = item;
    float acc1[32];
    for (int lane = 0; lane < 32; ++lane) acc1[lane] = -(FXF_INF_F);
    const auto pass0 = [&](const long long i1, float& sum1) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      sum1 = fxf_max(sum1, (v0));
    };
    long long j0 = 0;
    for (; j0 + 32 <= size1; j0 += 32) {
      for (int line = 0; line < 2; ++line) __builtin_prefetch((const char*)(in0 + i0 * e0_stride0 + (j0 + 1024)) + line * 64, 0);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass0(j0 + lane, acc1[lane]);
    }
    for (int lane = 0; j0 < size1; ++j0, ++lane) pass0(j0, acc1[lane]);
    for (int lane = 0; lane < 16; ++lane) acc1[lane] = fxf_max(acc1[lane], acc1[lane + 16]);
    for (int lane = 0; lane < 8; ++lane) acc1[lane] = fxf_max(acc1[lane], acc1[lane + 8]);
    for (int lane = 0; lane < 4; ++lane) acc1[lane] = fxf_max(acc1[lane], acc1[lane + 4]);
    for (int lane = 0; lane < 2; ++lane) acc1[lane] = fxf_max(acc1[lane], acc1[lane + 2]);
    for (int lane = 0; lane < 1; ++lane) acc1[lane] = fxf_max(acc1[lane], acc1[lane + 1]);
    const float v1 = (float)((float)acc1[0]);  // amax
    double acc4[32];
    for (int lane = 0; lane < 32; ++lane) acc4[lane] = 0.0f;
    const auto pass1 = [&](const long long i1, double& sum4) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v2 = v0-1.0f * v1;  // sub
      const float v3 = fxf_exp(v2);  // exp
      sum4 = sum4 + (v3);
    };
    long long j1 = 0;
    for (; j1 + 32 <= size1; j1 += 32) {
      for (int line = 0; line < 2; ++line) __builtin_prefetch((const char*)(out0 + i0 * out0_stride0 + j1) + line * 64, 1);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass1(j1 + lane, acc4[lane]);
    }
    for (int lane = 0; j1 < size1; ++j1, ++lane) pass1(j1, acc4[lane]);
    for (int lane = 0; lane < 16; ++lane) acc4[lane] = acc4[lane] + acc4[lane + 16];
    for (int lane = 0; lane < 8; ++lane) acc4[lane] = acc4[lane] + acc4[lane + 8];
    for (int lane = 0; lane < 4; ++lane) acc4[lane] = acc4[lane] + acc4[lane + 4];
    for (int lane = 0; lane < 2; ++lane) acc4[lane] = acc4[lane] + acc4[lane + 2];
    for (int lane = 0; lane < 1; ++lane) acc4[lane] = acc4[lane] + acc4[lane + 1];
    const float v4 = (float)((float)acc4[0]);  // sum
    const auto pass2 = [&](const long long i1) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v2 = v0-1.0f * v1;  // sub
      const float v3 = fxf_exp(v2);  // exp
      const float v5 = v3 / v4;  // div
      fxf_put(out0, i0 * out0_stride0 + i1, v5);
    };
    #pragma omp simd
    for (long long j = 0; j < size1; ++j) pass2(j);
  }
}
