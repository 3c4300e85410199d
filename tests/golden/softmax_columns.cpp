// normalization: index 32 bits, vector 16 (inputs 1, outputs 1), unroll 1, threads 1, columns multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 28
struct Params {
  void* ptr[2];
  long long n[5];
};

extern "C" void fxfuser_normalization_d61753f5(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  const long long size1 = (long long)p->n[0];
  const long long size0 = (long long)p->n[1];
  const long long e0_stride0 = (long long)p->n[2];
  const long long reduced_count = (long long)p->n[3];
  const long long out0_stride0 = (long long)p->n[4];
  for (long long item = begin; item < end; ++item) {
    const long long blocks = (size1 + 63) / 64;
    const long long start = item % blocks * 64;
    const int width = size1 - start < 64 ? (int)(size1 - start) : 64;
    float acc1[64];
    for (int lane = 0; lane < 64; ++lane) acc1[lane] = -(FXF_INF_F);
    for (long long i0 = 0; i0 < size0; ++i0) {
      #pragma omp simd
      for (int lane = 0; lane < width; ++lane) {
        const long long i1 = start + lane;
        const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
        acc1[lane] = fxf_max(acc1[lane], (v0));
      }
    }
    float r1[64];  // amax
    for (int lane = 0; lane < width; ++lane) r1[lane] = (float)((float)acc1[lane]);
    double acc4[64];
    for (int lane = 0; lane < 64; ++lane) acc4[lane] = 0.0f;
    for (long long i0 = 0; i0 < size0; ++i0) {
      #pragma omp simd
      for (int lane = 0; lane < width; ++lane) {
        const long long i1 = start + lane;
        const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
        const float v2 = v0-1.0f * r1[lane];  // sub
        const float v3 = fxf_exp(v2);  // exp
        acc4[lane] = acc4[lane] + (v3);
      }
    }
    float r4[64];  // sum
    for (int lane = 0; lane < width; ++lane) r4[lane] = (float)((float)acc4[lane]);
    for (long long i0 = 0; i0 < size0; ++i0) {
      #pragma omp simd
      for (int lane = 0; lane < width; ++lane) {
        const long long i1 = start + lane;
        const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
        const float v2 = v0-1.0f * r1[lane];  // sub
        const float v3 = fxf_exp(v2);  // exp
        const float v5 = v3 / r4[lane];  // div
        fxf_put(out0, i0 * out0_stride0 + i1, v5);
      }
    }
  }
}
