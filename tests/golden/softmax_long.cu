// normalization: index 32 bits, vector 4 (inputs 1, outputs 1), unroll 4, threads 512, inner multipass, 512 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 1
struct Params {
  void* ptr[2];
  long long n[5];
};

FXF_KERNEL(512) fxfuser_normalization_2744fcc4(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int rows = (int)p.n[0];
  const int row_length = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int reduced_count = (int)p.n[3];
  const int out0_stride0 = (int)p.n[4];
  const int lane = fxf_thread() % 512;
  const int row = (int)fxf_block() * 1 + fxf_thread() / 512;
  const bool live = true;
  const int here = live ? row : 0;
  const int i0 = here;
  const int length = row_length;
  const auto fold1 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  const auto fold4 = [](float a, float b) { return (float)(a + b); };
  float part1[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) part1[e] = -(FXF_INF_F);
  #pragma unroll 4
  for (int at = (int)lane * 4; live && at < length; at += 2048) {
    const int i1 = at;
    const auto x0 = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      part1[e] = fxf_max(part1[e], (v0));
    }
  }
  float acc1 = fxf_fold_parts<4>(part1, fold1);
  typedef float state1;
  FXF_SHARED(state1, scratch1, 16);
  fxf_post_warp(acc1, scratch1, fold1);
  fxf_barrier();
  acc1 = fxf_fold_warps<512>(acc1, scratch1, fold1);
  const float v1 = (float)(acc1);  // amax
  float part4[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) part4[e] = 0.0f;
  #pragma unroll 4
  for (int at = (int)lane * 4; live && at < length; at += 2048) {
    const int i1 = at;
    const auto x0 = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const float v2 = v0-1.0f * v1;  // sub
      const float v3 = fxf_exp(v2);  // exp
      part4[e] = part4[e] + (v3);
    }
  }
  float acc4 = fxf_fold_parts<4>(part4, fold4);
  typedef float state4;
  FXF_SHARED(state4, scratch4, 16);
  fxf_post_warp(acc4, scratch4, fold4);
  fxf_barrier();
  acc4 = fxf_fold_warps<512>(acc4, scratch4, fold4);
  const float v4 = (float)(acc4);  // sum
  #pragma unroll 4
  for (int at = (int)lane * 4; live && at < length; at += 2048) {
    const int i1 = at;
    const auto x0 = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
    float y0[4];
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const float v2 = v0-1.0f * v1;  // sub
      const float v3 = fxf_exp(v2);  // exp
      const float v5 = v3 / v4;  // div
      y0[e] = v5;
    }
    fxf_store(out0 + i0 * out0_stride0 + i1, y0);
  }
}
