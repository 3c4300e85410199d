// normalization: index 32 bits, vector 4 (inputs 1111, outputs 1), unroll 1, threads 128, inner block, 128 threads a row x 1 rows, 2 vectors a thread, split 1, cluster 1, 12 blocks an SM, grain 1
struct Params {
  void* ptr[5];
  long long n[6];
};

FXF_KERNEL(128, 12) fxfuser_normalization_f704c183(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  const float* __restrict__ in2 = (const float*)p.ptr[2];
  const float* __restrict__ in3 = (const float*)p.ptr[3];
  float* __restrict__ out0 = (float*)p.ptr[4];
  const int rows = (int)p.n[0];
  const int row_length = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int e1_stride0 = (int)p.n[3];
  const int reduced_count = (int)p.n[4];
  const int out0_stride0 = (int)p.n[5];
  const int lane = fxf_thread() % 128;
  const int row = (int)fxf_block() * 1 + fxf_thread() / 128;
  const bool live = true;
  const int here = live ? row : 0;
  const int i0 = here;
  const int length = row_length;
  const auto fold3 = [](float a, float b) { return (float)(a + b); };
  const auto fold6 = [](float a, float b) { return (float)(a + b); };
  const float v7 = 1e-05f;
  fxf_pack<float, 4> x0[2];
  fxf_pack<float, 4> x1[2];
  FXF_UNROLL
  for (int k = 0; k < 2; ++k) {
    const int at = (k * 128 + lane) * 4;
    if (live && at < length) {
      const int i1 = at;
      x0[k] = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
      x1[k] = fxf_load<4>(in1 + i0 * e1_stride0 + i1);
    }
  }
  float part3[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) part3[e] = 0.0f;
  FXF_UNROLL
  for (int k = 0; k < 2; ++k) {
    const int at = (k * 128 + lane) * 4;
    if (live && at < length) {
      const int i1 = at;
      FXF_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float v0 = fxf_get(x0[k], e);
        const float v1 = fxf_get(x1[k], e);
        const float v2 = v0 + 1.0f * v1;  // add
        part3[e] = part3[e] + (v2);
      }
    }
  }
  float acc3 = fxf_fold_parts<4>(part3, fold3);
  typedef float state3;
  FXF_SHARED(state3, scratch3, 4);
  fxf_post_warp(acc3, scratch3, fold3);
  fxf_barrier();
  acc3 = fxf_fold_warps<128>(acc3, scratch3, fold3);
  const float v3 = (float)(acc3 / (float)(double)reduced_count);  // mean
  float part6[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) part6[e] = 0.0f;
  FXF_UNROLL
  for (int k = 0; k < 2; ++k) {
    const int at = (k * 128 + lane) * 4;
    if (live && at < length) {
      const int i1 = at;
      FXF_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float v0 = fxf_get(x0[k], e);
        const float v1 = fxf_get(x1[k], e);
        const float v2 = v0 + 1.0f * v1;  // add
        const float v4 = v2-1.0f * v3;  // sub
        const float v5 = v4 * v4;  // mul
        part6[e] = part6[e] + (v5);
      }
    }
  }
  float acc6 = fxf_fold_parts<4>(part6, fold6);
  typedef float state6;
  FXF_SHARED(state6, scratch6, 4);
  fxf_post_warp(acc6, scratch6, fold6);
  fxf_barrier();
  acc6 = fxf_fold_warps<128>(acc6, scratch6, fold6);
  const float v6 = (float)(acc6 / (float)(double)reduced_count);  // mean
  const float v8 = v6 + 1.0f * v7;  // add
  const float v9 = fxf_rsqrt(v8);  // rsqrt
  FXF_UNROLL
  for (int k = 0; k < 2; ++k) {
    const int at = (k * 128 + lane) * 4;
    if (live && at < length) {
      const int i1 = at;
      const auto x11 = fxf_load<4>(in2 + i1);
      const auto x13 = fxf_load<4>(in3 + i1);
      float y0[4];
      FXF_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float v0 = fxf_get(x0[k], e);
        const float v1 = fxf_get(x1[k], e);
        const float v2 = v0 + 1.0f * v1;  // add
        const float v4 = v2-1.0f * v3;  // sub
        const float v10 = v4 * v9;  // mul
        const float v11 = fxf_get(x11, e);
        const float v12 = v10 * v11;  // mul
        const float v13 = fxf_get(x13, e);
        const float v14 = v12 + 1.0f * v13;  // add
        y0[e] = v14;
      }
      fxf_store(out0 + i0 * out0_stride0 + i1, y0);
    }
  }
}
