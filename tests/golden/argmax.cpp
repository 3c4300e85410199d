// reduction: index 32 bits, vector 8 (inputs 1, outputs 00), unroll 2, threads 1, inner multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 33
struct Params {
  void* ptr[3];
  long long n[3];
};

extern "C" void fxfuser_reduction_b3048d05(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  long long* out1 = (long long*)p->ptr[2];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long reduced_count = (long long)p->n[2];
  for (long long item = begin; item < end; ++item) {
    const long long i0 = item;
    float acc2[64];
    long long at2[64];
    for (int lane = 0; lane < 64; ++lane) acc2[lane] = -(FXF_INF_F), at2[lane] = 0x7fffffffffffffffLL;
    const auto pass0 = [&](const long long i1, float& sum2, long long& best2) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const long long v1 = (long long)(i1);
      const float new2 = v0;
      const long long where2 = v1;
      { const bool take = fxf_isnan(new2) ? !fxf_isnan(sum2) | 1 < 0 : (!fxf_isnan(sum2) & (new2 > sum2 | (new2 == sum2 & 1 < 0))); sum2 = take ? new2 : sum2; best2 = take ? where2 : best2; }
    };
    long long j0 = 0;
    for (; j0 + 64 <= size1; j0 += 64) {
      for (int line = 0; line < 4; ++line) __builtin_prefetch((const char*)(in0 + i0 * e0_stride0 + (j0 + 1024)) + line * 64, 0);
      #pragma omp simd
      for (int lane = 0; lane < 64; ++lane) pass0(j0 + lane, acc2[lane], at2[lane]);
    }
    for (int lane = 0; j0 < size1; ++j0, ++lane) pass0(j0, acc2[lane], at2[lane]);
    for (int lane = 0; lane < 32; ++lane) { const bool take = fxf_isnan(acc2[lane + 32]) ? !fxf_isnan(acc2[lane]) || at2[lane + 32] < at2[lane] : (!fxf_isnan(acc2[lane]) && (acc2[lane + 32] > acc2[lane] || (acc2[lane + 32] == acc2[lane] && at2[lane + 32] < at2[lane]))); acc2[lane] = take ? acc2[lane + 32] : acc2[lane]; at2[lane] = take ? at2[lane + 32] : at2[lane]; }
    for (int lane = 0; lane < 16; ++lane) { const bool take = fxf_isnan(acc2[lane + 16]) ? !fxf_isnan(acc2[lane]) || at2[lane + 16] < at2[lane] : (!fxf_isnan(acc2[lane]) && (acc2[lane + 16] > acc2[lane] || (acc2[lane + 16] == acc2[lane] && at2[lane + 16] < at2[lane]))); acc2[lane] = take ? acc2[lane + 16] : acc2[lane]; at2[lane] = take ? at2[lane + 16] : at2[lane]; }
    for (int lane = 0; lane < 8; ++lane) { const bool take = fxf_isnan(acc2[lane + 8]) ? !fxf_isnan(acc2[lane]) || at2[lane + 8] < at2[lane] : (!fxf_isnan(acc2[lane]) && (acc2[lane + 8] > acc2[lane] || (acc2[lane + 8] == acc2[lane] && at2[lane + 8] < at2[lane]))); acc2[lane] = take ? acc2[lane + 8] : acc2[lane]; at2[lane] = take ? at2[lane + 8] : at2[lane]; }
    for (int lane = 0; lane < 4; ++lane) { const bool take = fxf_isnan(acc2[lane + 4]) ? !fxf_isnan(acc2[lane]) || at2[lane + 4] < at2[lane] : (!fxf_isnan(acc2[lane]) && (acc2[lane + 4] > acc2[lane] || (acc2[lane + 4] == acc2[lane] && at2[lane + 4] < at2[lane]))); acc2[lane] = take ? acc2[lane + 4] : acc2[lane]; at2[lane] = take ? at2[lane + 4] : at2[lane]; }
    for (int lane = 0; lane < 2; ++lane) { const bool take = fxf_isnan(acc2[lane + 2]) ? !fxf_isnan(acc2[lane]) || at2[lane + 2] < at2[lane] : (!fxf_isnan(acc2[lane]) && (acc2[lane + 2] > acc2[lane] || (acc2[lane + 2] == acc2[lane] && at2[lane + 2] < at2[lane]))); acc2[lane] = take ? acc2[lane + 2] : acc2[lane]; at2[lane] = take ? at2[lane + 2] : at2[lane]; }
    for (int lane = 0; lane < 1; ++lane) { const bool take = fxf_isnan(acc2[lane + 1]) ? !fxf_isnan(acc2[lane]) || at2[lane + 1] < at2[lane] : (!fxf_isnan(acc2[lane]) && (acc2[lane + 1] > acc2[lane] || (acc2[lane + 1] == acc2[lane] && at2[lane + 1] < at2[lane]))); acc2[lane] = take ? acc2[lane + 1] : acc2[lane]; at2[lane] = take ? at2[lane + 1] : at2[lane]; }
    if (at2[0] == 0x7fffffffffffffffLL) at2[0] = (long long)(0);
    const float v2 = (float)((float)acc2[0]);  // max_dim
    const long long v3 = (long long)(at2[0]);  // max_dim
    fxf_put(out0, i0, v2);
    fxf_put(out1, i0, v3);
  }
}
