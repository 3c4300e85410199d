// reduction: index 32 bits, vector 4 (inputs 1, outputs 00), unroll 2, threads 128, inner multipass, 64 threads a row x 2 rows, 1 vectors a thread, split 1, cluster 1, grain 1
struct Params {
  void* ptr[3];
  long long n[4];
};

FXF_KERNEL(128) fxfuser_reduction_18489977(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  long long* __restrict__ out1 = (long long*)p.ptr[2];
  const int rows = (int)p.n[0];
  const int row_length = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int reduced_count = (int)p.n[3];
  const int lane = fxf_thread() % 64;
  const int row = (int)fxf_block() * 2 + fxf_thread() / 64;
  const bool live = row < rows;
  const int here = live ? row : 0;
  const int i0 = here;
  const int length = row_length;
  const auto fold2 = [](const fxf_arg<float, int>& a, const fxf_arg<float, int>& b) { return (fxf_isnan(b.value) ? !fxf_isnan(a.value) || b.index < a.index : (!fxf_isnan(a.value) && (b.value > a.value || (b.value == a.value && b.index < a.index)))) ? b : a; };
  fxf_arg<float, int> part2[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) part2[e] = fxf_arg<float, int>{-(FXF_INF_F), 0x7fffffff};
  #pragma unroll 2
  for (int at = (int)lane * 4; live && at < length; at += 256) {
    const int i1 = at;
    const auto x0 = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const long long v1 = (long long)((i1 + e));
      part2[e] = fold2(part2[e], fxf_arg<float, int>{v0, (int)(v1)});
    }
  }
  fxf_arg<float, int> acc2 = fxf_fold_parts<4>(part2, fold2);
  typedef fxf_arg<float, int> state2;
  FXF_SHARED(state2, scratch2, 4);
  fxf_post_warp(acc2, scratch2, fold2);
  fxf_barrier();
  acc2 = fxf_fold_warps<64>(acc2, scratch2, fold2);
  const float v2 = (float)(acc2.value);  // max_dim
  const long long v3 = (long long)acc2.index;  // max_dim
  if (live && lane == 0) {
    fxf_put(out0, i0, v2);
    fxf_put(out1, i0, v3);
  }
}
