// reduction: index 32 bits, vector 4 (inputs 1, outputs 0), unroll 4, threads 128, inner multipass, 32 threads a row x 4 rows, 1 vectors a thread, split 1, cluster 1, grain 1
struct Params {
  void* ptr[2];
  long long n[4];
};

FXF_KERNEL(128) fxfuser_reduction_417d02f5(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int rows = (int)p.n[0];
  const int row_length = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int reduced_count = (int)p.n[3];
  const int lane = fxf_thread() % 32;
  const int row = (int)fxf_block() * 4 + fxf_thread() / 32;
  const bool live = row < rows;
  const int here = live ? row : 0;
  const int i0 = here;
  const int length = row_length;
  const auto fold2 = [](float a, float b) { return (float)(a + b); };
  float part2[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) part2[e] = 0.0f;
  #pragma unroll 4
  for (int at = (int)lane * 4; live && at < length; at += 128) {
    const int i1 = at;
    const auto x0 = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const float v1 = v0 * v0;  // mul
      part2[e] = part2[e] + (v1);
    }
  }
  float acc2 = fxf_fold_parts<4>(part2, fold2);
  acc2 = fxf_fold_lanes<32>(acc2, fold2);
  const float v2 = (float)(acc2);  // sum
  if (live && lane == 0) {
    fxf_put(out0, i0, v2);
  }
}
