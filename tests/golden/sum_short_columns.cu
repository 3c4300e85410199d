// reduction: index 32 bits, vector 8 (inputs 10, outputs 0), unroll 8, threads 256, columns multipass, 14 threads a row x 18 rows, 1 vectors a thread, split 227, cluster 1, 16 rows side by side, 2 blocks an SM, grain 1
struct Params {
  void* ptr[4];
  long long n[6];
};

FXF_KERNEL(256, 2) fxfuser_reduction_89668d63(const FXF_PARAM Params p) {
  fxf_let_next_begin();
  const fxf_bfloat16* __restrict__ in0 = (const fxf_bfloat16*)p.ptr[0];
  const fxf_bfloat16* __restrict__ in1 = (const fxf_bfloat16*)p.ptr[1];
  fxf_bfloat16* __restrict__ out0 = (fxf_bfloat16*)p.ptr[2];
  char* workspace = (char*)p.ptr[3];
  const int split = (int)p.n[0];
  const int column_length = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int partial3 = (int)p.n[3];
  const int slab = fxf_block() % split, tile = fxf_block() / split;
  const int lane = fxf_thread() % 14, deep = fxf_thread() / 14;
  const int length = column_length, groups = length / 16;
  const auto fold3 = [](float a, float b) { return (float)(a + b); };
  float r1[8];
  FXF_UNROLL
  for (int e = 0; e < 8; ++e) {
    const int i1 = (lane * 8 + e) % 7;
    const float v1 = fxf_get(in1, i1);
    r1[e] = v1;
  }
  float acc3[8];
  FXF_UNROLL for (int e = 0; e < 8; ++e) acc3[e] = 0.0f;
  {
    int first = slab * 144 + deep;
    for (; deep < 18 && first + 126 < groups; first += split * 144) {
      fxf_pack<fxf_bfloat16, 8> x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 18;
        const int i0 = at * 16 + (lane * 8) / 7;
        const int i1 = (lane * 8) % 7;
        x0[u] = fxf_load<8>(in0 + i0 * e0_stride0 + i1);
      }
      float run3[64];
      FXF_UNROLL for (int e = 0; e < 64; ++e) run3[e] = 0.0f;
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 18;
        FXF_UNROLL
        for (int e = 0; e < 8; ++e) {
          const int i0 = at * 16 + (lane * 8 + e) / 7;
          const int i1 = (lane * 8 + e) % 7;
          const float v0 = fxf_get(x0[u], e);
          const float v2 = v0 * r1[e];  // mul
          run3[e * 8 + u] = run3[e * 8 + u] + (v2);
        }
      }
      FXF_UNROLL for (int e = 0; e < 8; ++e) acc3[e] = fold3(acc3[e], fxf_fold_parts<8>(run3 + e * 8, fold3));
    }
    if (deep < 18 && first < groups) {
      fxf_pack<fxf_bfloat16, 8> x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 18 < groups ? first + u * 18 : groups - 1;
        const int i0 = at * 16 + (lane * 8) / 7;
        const int i1 = (lane * 8) % 7;
        x0[u] = fxf_load<8>(in0 + i0 * e0_stride0 + i1);
      }
      float run3[64];
      FXF_UNROLL for (int e = 0; e < 64; ++e) run3[e] = 0.0f;
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 18;
        if (at < groups) {
          FXF_UNROLL
          for (int e = 0; e < 8; ++e) {
            const int i0 = at * 16 + (lane * 8 + e) / 7;
            const int i1 = (lane * 8 + e) % 7;
            const float v0 = fxf_get(x0[u], e);
            const float v2 = v0 * r1[e];  // mul
            run3[e * 8 + u] = run3[e * 8 + u] + (v2);
          }
        }
      }
      FXF_UNROLL for (int e = 0; e < 8; ++e) acc3[e] = fold3(acc3[e], fxf_fold_parts<8>(run3 + e * 8, fold3));
    }
  }
  if (slab == 0 && deep == 0) {
    FXF_UNROLL
    for (int e = 0; e < 8; ++e) {
      const int i0 = groups * 16 + (lane * 8 + e) / 7;
      const int i1 = (lane * 8 + e) % 7;
      if (i0 < length) {
        float last3 = 0.0f;
        const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
        const float v2 = v0 * r1[e];  // mul
        last3 = last3 + (v2);
        acc3[e] = fold3(acc3[e], last3);
      }
    }
  }
  typedef float state3;
  FXF_SHARED(state3, scratch3, 2016);
  if (deep < 18) {
    FXF_UNROLL for (int e = 0; e < 8; ++e) FXF_PLACE(scratch3, deep * 112 + lane * 8 + e, acc3[e]);
  }
  fxf_barrier();
  for (int j = fxf_thread(); j < 112; j += 256) FXF_PLACE(scratch3, j, fxf_fold_column<18>(scratch3, j, 112, fold3));
  fxf_barrier();
  if (fxf_thread() < 7) {
    const int i1 = fxf_thread();
    const int cell = i1 * split + slab;
    fxf_put_partial((float*)(workspace + partial3) + cell, fxf_fold_column<16>(scratch3, i1, 7, fold3));
  }
}
FXF_KERNEL(256) fxfuser_reduction_89668d63_finish(const FXF_PARAM Params p) {
  fxf_await_previous();
  const fxf_bfloat16* __restrict__ in0 = (const fxf_bfloat16*)p.ptr[0];
  const fxf_bfloat16* __restrict__ in1 = (const fxf_bfloat16*)p.ptr[1];
  fxf_bfloat16* __restrict__ out0 = (fxf_bfloat16*)p.ptr[2];
  char* workspace = (char*)p.ptr[3];
  const int split = (int)p.n[0];
  const int column_length = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int partial3 = (int)p.n[3];
  const int rows = (int)p.n[4];
  const int reduced_count = (int)p.n[5];
  const int lane = fxf_thread() % 64;
  const int row = (int)fxf_block() * 4 + fxf_thread() / 64;
  const bool live = row < rows;
  const int here = live ? row : 0;
  const int i1 = here;
  const auto fold3 = [](float a, float b) { return (float)(a + b); };
  float acc3 = 0.0f;
  float part3[4];
  FXF_UNROLL for (int u = 0; u < 4; ++u) part3[u] = acc3;
  for (int first = lane; live && first < split; first += 256) {
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int slab = first + u * 64;
      if (slab < split) part3[u] = fold3(part3[u], fxf_get_fresh((const float*)(workspace + partial3) + row * split + slab));
    }
  }
  acc3 = fxf_fold_parts<4>(part3, fold3);
  typedef float state3;
  FXF_SHARED(state3, scratch3, 8);
  fxf_post_warp(acc3, scratch3, fold3);
  fxf_barrier();
  acc3 = fxf_fold_warps<64>(acc3, scratch3, fold3);
  const float v3 = (float)(acc3);
  if (live && lane == 0) {
    fxf_put(out0, i1, v3);
  }
}
