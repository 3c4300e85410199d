// normalization: index 32 bits, vector 1 (inputs 00, outputs 0), unroll 2, threads 1, inner multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 2
struct Params {
  void* ptr[3];
  long long n[4];
};

extern "C" void fxfuser_normalization_97edfd2b(const Params* p, long long begin, long long end) {
  const fxf_bfloat16* in0 = (const fxf_bfloat16*)p->ptr[0];
  const fxf_bfloat16* in1 = (const fxf_bfloat16*)p->ptr[1];
  fxf_bfloat16* out0 = (fxf_bfloat16*)p->ptr[2];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long reduced_count = (long long)p->n[2];
  const long long out0_stride0 = (long long)p->n[3];
  for (long long item = begin; item < end; ++item) {
    const long long i0 = item;
    float acc2[32];
    for (int lane = 0; lane < 32; ++lane) acc2[lane] = -(FXF_INF_F);
    const auto pass0 = [&](const long long i1, float& sum2) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v1 = v0;
      sum2 = fxf_max(sum2, (v1));
    };
    long long j0 = 0;
    for (; j0 + 32 <= size1; j0 += 32) {
      for (int line = 0; line < 1; ++line) __builtin_prefetch((const char*)(in0 + i0 * e0_stride0 + (j0 + 2048)) + line * 64, 0);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass0(j0 + lane, acc2[lane]);
    }
    for (int lane = 0; j0 < size1; ++j0, ++lane) pass0(j0, acc2[lane]);
    for (int lane = 0; lane < 16; ++lane) acc2[lane] = fxf_max(acc2[lane], acc2[lane + 16]);
    for (int lane = 0; lane < 8; ++lane) acc2[lane] = fxf_max(acc2[lane], acc2[lane + 8]);
    for (int lane = 0; lane < 4; ++lane) acc2[lane] = fxf_max(acc2[lane], acc2[lane + 4]);
    for (int lane = 0; lane < 2; ++lane) acc2[lane] = fxf_max(acc2[lane], acc2[lane + 2]);
    for (int lane = 0; lane < 1; ++lane) acc2[lane] = fxf_max(acc2[lane], acc2[lane + 1]);
    const float v2 = (float)((float)acc2[0]);  // amax
    float keep4[8192];
    double acc5[32];
    for (int lane = 0; lane < 32; ++lane) acc5[lane] = 0.0f;
    const auto pass1 = [&](const long long i1, double& sum5) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const float v1 = v0;
      const float v3 = v1-1.0f * v2;  // sub
      const float v4 = fxf_exp(v3);  // exp
      keep4[i1] = v4;
      sum5 = sum5 + (v4);
    };
    long long j1 = 0;
    for (; j1 + 32 <= size1; j1 += 32) {
      for (int line = 0; line < 1; ++line) __builtin_prefetch((const char*)(out0 + i0 * out0_stride0 + j1) + line * 64, 1);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass1(j1 + lane, acc5[lane]);
    }
    for (int lane = 0; j1 < size1; ++j1, ++lane) pass1(j1, acc5[lane]);
    for (int lane = 0; lane < 16; ++lane) acc5[lane] = acc5[lane] + acc5[lane + 16];
    for (int lane = 0; lane < 8; ++lane) acc5[lane] = acc5[lane] + acc5[lane + 8];
    for (int lane = 0; lane < 4; ++lane) acc5[lane] = acc5[lane] + acc5[lane + 4];
    for (int lane = 0; lane < 2; ++lane) acc5[lane] = acc5[lane] + acc5[lane + 2];
    for (int lane = 0; lane < 1; ++lane) acc5[lane] = acc5[lane] + acc5[lane + 1];
    const float v5 = (float)((float)acc5[0]);  // sum
    const auto pass2 = [&](const long long i1) __attribute__((always_inline)) {
      const float v6 = keep4[i1] / v5;  // div
      const float v7 = v6;
      const float v8 = fxf_get(in1, i1);
      const float v9 = v7 * v8;  // mul
      fxf_put(out0, i0 * out0_stride0 + i1, v9);
    };
    #pragma omp simd
    for (long long j = 0; j < size1; ++j) pass2(j);
  }
}
