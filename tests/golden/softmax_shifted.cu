// normalization: index 32 bits, vector 8 (inputs 11, outputs 1), unroll 1, threads 256, inner block, 256 threads a row x 1 rows, 3 vectors a thread, split 1, cluster 1, shifted rows, inputs 01 across, 6 blocks an SM, grain 1
struct Params {
  void* ptr[3];
  long long n[8];
};

FXF_KERNEL(256, 6) fxfuser_normalization_7fb0d751(const FXF_PARAM Params p) {
  const fxf_bfloat16* __restrict__ in0 = (const fxf_bfloat16*)p.ptr[0];
  const fxf_bfloat16* __restrict__ in1 = (const fxf_bfloat16*)p.ptr[1];
  fxf_bfloat16* __restrict__ out0 = (fxf_bfloat16*)p.ptr[2];
  const int rows = (int)p.n[0];
  const int row_length = (int)p.n[1];
  const int out0_stride0 = (int)p.n[2];
  const int e0_stride0 = (int)p.n[3];
  const int e0_end = (int)p.n[4];
  const int reduced_count = (int)p.n[5];
  const int zero = (int)p.n[6];
  const int e8_end = (int)p.n[7];
  const int lane = fxf_thread() % 256;
  const int row = (int)fxf_block() * 1 + fxf_thread() / 256;
  const bool live = true;
  const int here = live ? row : 0;
  const int i0 = here;
  const int length = row_length;
  const auto fold2 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  const auto fold5 = [](float a, float b) { return (float)(a + b); };
  const int shift = (int)((i0 * out0_stride0) & 7);
  const int end = length + shift;
  fxf_pack<fxf_bfloat16, 8> x0[3];
  FXF_UNROLL
  for (int k = 0; k < 3; ++k) {
    const int at = (k * 256 + lane) * 8;
    if (live && at < end) {
      const int i1 = at - shift;
      x0[k] = fxf_load_within<8>(in0, i0 * e0_stride0 + i1, e0_end);
    }
  }
  float part2[8];
  FXF_UNROLL for (int e = 0; e < 8; ++e) part2[e] = -(FXF_INF_F);
  FXF_UNROLL
  for (int k = 0; k < 3; ++k) {
    const int at = (k * 256 + lane) * 8;
    if (live && at < end) {
      const int i1 = at - shift;
      FXF_UNROLL
      for (int e = 0; e < 8; ++e) {
        const bool inside = fxf_inside((i1 + e), length);
        const float v0 = fxf_get(x0[k], e);
        const float v1 = v0;
        if (inside) part2[e] = fxf_max(part2[e], (v1));
      }
    }
  }
  float acc2 = fxf_fold_parts<8>(part2, fold2);
  typedef float state2;
  FXF_SHARED(state2, scratch2, 8);
  fxf_post_warp(acc2, scratch2, fold2);
  fxf_barrier();
  acc2 = fxf_fold_warps<256>(acc2, scratch2, fold2);
  const float v2 = (float)(acc2);  // amax
  float part5[8];
  FXF_UNROLL for (int e = 0; e < 8; ++e) part5[e] = 0.0f;
  FXF_UNROLL for (int k = 0; k < 3; ++k) fxf_renew(x0[k], zero);
  FXF_UNROLL
  for (int k = 0; k < 3; ++k) {
    const int at = (k * 256 + lane) * 8;
    if (live && at < end) {
      const int i1 = at - shift;
      FXF_UNROLL
      for (int e = 0; e < 8; ++e) {
        const bool inside = fxf_inside((i1 + e), length);
        const float v0 = fxf_get(x0[k], e);
        const float v1 = v0;
        const float v3 = v1-1.0f * v2;  // sub
        const float v4 = fxf_narrow_exp(v3);  // exp
        if (inside) part5[e] = part5[e] + (v4);
      }
    }
  }
  float acc5 = fxf_fold_parts<8>(part5, fold5);
  typedef float state5;
  FXF_SHARED(state5, scratch5, 8);
  fxf_post_warp(acc5, scratch5, fold5);
  fxf_barrier();
  acc5 = fxf_fold_warps<256>(acc5, scratch5, fold5);
  const float v5 = (float)(acc5);  // sum
  FXF_UNROLL for (int k = 0; k < 3; ++k) fxf_renew(x0[k], zero);
  FXF_UNROLL
  for (int k = 0; k < 3; ++k) {
    const int at = (k * 256 + lane) * 8;
    if (live && at < end) {
      const int i1 = at - shift;
      const auto x8 = fxf_load_across<8>(in1, i1, e8_end);
      float y0[8];
      FXF_UNROLL
      for (int e = 0; e < 8; ++e) {
        const bool inside = fxf_inside((i1 + e), length);
        const float v0 = fxf_get(x0[k], e);
        const float v1 = v0;
        const float v3 = v1-1.0f * v2;  // sub
        const float v4 = fxf_narrow_exp(v3);  // exp
        const float v6 = fxf_narrow_div(v4, v5);  // div
        const float v7 = v6;
        const float v8 = fxf_get(x8, e);
        const float v9 = v7 * v8;  // mul
        y0[e] = v9;
      }
      fxf_store_inside(out0, i0 * out0_stride0 + i1, y0, i1, length);
    }
  }
}
