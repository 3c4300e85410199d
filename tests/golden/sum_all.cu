// reduction: index 32 bits, vector 4 (inputs 1, outputs 0), unroll 4, threads 256, inner multipass, 256 threads a row x 1 rows, 1 vectors a thread, split 528, cluster 1, grain 1
struct Params {
  void* ptr[3];
  long long n[5];
};

FXF_KERNEL(256) fxfuser_reduction_ff3ae0cb(const FXF_PARAM Params p) {
  fxf_let_next_begin();
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  char* workspace = (char*)p.ptr[2];
  const int split = (int)p.n[0];
  const int rows = (int)p.n[1];
  const int row_length = (int)p.n[2];
  const int partial1 = (int)p.n[3];
  const int slab = fxf_block() % split, tile = fxf_block() / split;
  const int lane = fxf_thread() % 256;
  const int row = (int)tile * 1 + fxf_thread() / 256;
  const bool live = true;
  const int length = row_length;
  const auto fold1 = [](float a, float b) { return (float)(a + b); };
  const int chunk = (length / 4 + split - 1) / split * 4;
  const int low = slab * chunk, high = low + chunk < length ? low + chunk : length;
  float part1[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) part1[e] = 0.0f;
  #pragma unroll 4
  for (int at = low + (int)lane * 4; live && at < high; at += 1024) {
    const int i0 = at;
    const auto x0 = fxf_load<4>(in0 + i0);
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      part1[e] = part1[e] + (v0);
    }
  }
  float acc1 = fxf_fold_parts<4>(part1, fold1);
  typedef float state1;
  FXF_SHARED(state1, scratch1, 8);
  fxf_post_warp(acc1, scratch1, fold1);
  fxf_barrier();
  acc1 = fxf_fold_warps<256>(acc1, scratch1, fold1);
  if (live && lane == 0) fxf_put_partial((float*)(workspace + partial1) + row * split + slab, acc1);
}
FXF_KERNEL(256) fxfuser_reduction_ff3ae0cb_finish(const FXF_PARAM Params p) {
  fxf_await_previous();
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  char* workspace = (char*)p.ptr[2];
  const int split = (int)p.n[0];
  const int rows = (int)p.n[1];
  const int row_length = (int)p.n[2];
  const int partial1 = (int)p.n[3];
  const int reduced_count = (int)p.n[4];
  const int lane = fxf_thread() % 256;
  const int row = (int)fxf_block() * 1 + fxf_thread() / 256;
  const bool live = row < rows;
  const auto fold1 = [](float a, float b) { return (float)(a + b); };
  float acc1 = 0.0f;
  float part1[4];
  FXF_UNROLL for (int u = 0; u < 4; ++u) part1[u] = acc1;
  for (int first = lane; live && first < split; first += 1024) {
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int slab = first + u * 256;
      if (slab < split) part1[u] = fold1(part1[u], fxf_get_fresh((const float*)(workspace + partial1) + row * split + slab));
    }
  }
  acc1 = fxf_fold_parts<4>(part1, fold1);
  typedef float state1;
  FXF_SHARED(state1, scratch1, 8);
  fxf_post_warp(acc1, scratch1, fold1);
  fxf_barrier();
  acc1 = fxf_fold_warps<256>(acc1, scratch1, fold1);
  const float v1 = (float)(acc1);
  if (live && lane == 0) {
    fxf_put(out0, 0, v1);
  }
}
