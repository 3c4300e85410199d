// reduction: index 32 bits, vector 4 (inputs 1, outputs 1), unroll 8, threads 256, columns multipass, 32 threads a row x 8 rows, 1 vectors a thread, split 32, cluster 1, grain 1
struct Params {
  void* ptr[3];
  long long n[8];
};

FXF_KERNEL(256) fxfuser_reduction_04f013fa(const FXF_PARAM Params p) {
  fxf_let_next_begin();
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  char* workspace = (char*)p.ptr[2];
  const int split = (int)p.n[0];
  const int tiles = (int)p.n[1];
  const int size1 = (int)p.n[2];
  const int column_length = (int)p.n[3];
  const int e0_stride0 = (int)p.n[4];
  const int partial1 = (int)p.n[5];
  const int slab = fxf_block() % split, tile = fxf_block() / split;
  const int lane = fxf_thread() % 32, deep = fxf_thread() / 32;
  const int i1 = ((int)tile % tiles * 32 + lane) * 4;
  const bool live = i1 < size1;
  const int length = column_length;
  const auto fold1 = [](float a, float b) { return (float)(a + b); };
  float acc1[4];
  FXF_UNROLL for (int e = 0; e < 4; ++e) acc1[e] = 0.0f;
  {
    int first = slab * 64 + deep;
    for (; live && first + 56 < length; first += split * 64) {
      fxf_pack<float, 4> x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 8;
        const int i0 = at;
        x0[u] = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
      }
      float run1[32];
      FXF_UNROLL for (int e = 0; e < 32; ++e) run1[e] = 0.0f;
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 8;
        const int i0 = at;
        FXF_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float v0 = fxf_get(x0[u], e);
          run1[e * 8 + u] = run1[e * 8 + u] + (v0);
        }
      }
      FXF_UNROLL for (int e = 0; e < 4; ++e) acc1[e] = fold1(acc1[e], fxf_fold_parts<8>(run1 + e * 8, fold1));
    }
    if (live && first < length) {
      fxf_pack<float, 4> x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 8 < length ? first + u * 8 : length - 1;
        const int i0 = at;
        x0[u] = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
      }
      float run1[32];
      FXF_UNROLL for (int e = 0; e < 32; ++e) run1[e] = 0.0f;
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 8;
        if (at < length) {
          const int i0 = at;
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0[u], e);
            run1[e * 8 + u] = run1[e * 8 + u] + (v0);
          }
        }
      }
      FXF_UNROLL for (int e = 0; e < 4; ++e) acc1[e] = fold1(acc1[e], fxf_fold_parts<8>(run1 + e * 8, fold1));
    }
  }
  typedef float state1;
  FXF_SHARED(state1, scratch1, 1024);
  FXF_UNROLL for (int e = 0; e < 4; ++e) FXF_PLACE(scratch1, (deep * 4 + e) * 32 + lane, acc1[e]);
  fxf_barrier();
  for (int e = deep; e < 4; e += 8) FXF_PLACE(scratch1, e * 32 + lane, fxf_fold_column<8>(scratch1, e * 32 + lane, 128, fold1));
  fxf_barrier();
  FXF_UNROLL for (int e = 0; e < 4; ++e) acc1[e] = FXF_TAKE(scratch1, e * 32 + lane);
  if (live && deep == 0) {
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int cell = (0 * size1 + (i1 + e)) * split + slab;
      fxf_put_partial((float*)(workspace + partial1) + cell, acc1[e]);
    }
  }
}
FXF_KERNEL(256) fxfuser_reduction_04f013fa_finish(const FXF_PARAM Params p) {
  fxf_await_previous();
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  char* workspace = (char*)p.ptr[2];
  const int split = (int)p.n[0];
  const int tiles = (int)p.n[1];
  const int size1 = (int)p.n[2];
  const int column_length = (int)p.n[3];
  const int e0_stride0 = (int)p.n[4];
  const int partial1 = (int)p.n[5];
  const int rows = (int)p.n[6];
  const int reduced_count = (int)p.n[7];
  const int lane = fxf_thread() % 32;
  const int row = (int)fxf_block() * 8 + fxf_thread() / 32;
  const bool live = row < rows;
  const int here = live ? row : 0;
  const int i1 = here;
  const auto fold1 = [](float a, float b) { return (float)(a + b); };
  float acc1 = 0.0f;
  float part1[4];
  FXF_UNROLL for (int u = 0; u < 4; ++u) part1[u] = acc1;
  for (int first = lane; live && first < split; first += 128) {
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int slab = first + u * 32;
      if (slab < split) part1[u] = fold1(part1[u], fxf_get_fresh((const float*)(workspace + partial1) + row * split + slab));
    }
  }
  acc1 = fxf_fold_parts<4>(part1, fold1);
  acc1 = fxf_fold_lanes<32>(acc1, fold1);
  const float v1 = (float)(acc1);
  if (live && lane == 0) {
    fxf_put(out0, i1, v1);
  }
}
