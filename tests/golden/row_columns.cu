// normalization: index 32 bits, vector 4 (inputs 11, outputs 11), unroll 1, threads 128, inner warp, 32 threads a row x 4 rows, 8 vectors a thread, split 1, cluster 1, columns in 512 slabs, 512 teams, 3 stages, 4 blocks an SM, grain 1
struct Params {
  void* ptr[5];
  long long n[11];
};

FXF_KERNEL(128, 4) fxfuser_normalization_5dbd8bbc(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  float* __restrict__ out1 = (float*)p.ptr[3];
  char* workspace = (char*)p.ptr[4];
  const int row_length = (int)p.n[0];
  const int teams = (int)p.n[1];
  const int row_blocks = (int)p.n[2];
  const int rows = (int)p.n[3];
  const int e0_stride0 = (int)p.n[4];
  const int reduced_count = (int)p.n[5];
  const int zero = (int)p.n[6];
  const int out0_stride0 = (int)p.n[7];
  const int columns8 = (int)p.n[8];
  const int lane = fxf_thread() % 32;
  const int team = fxf_block();
  const int length = row_length;
  const auto fold1 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  const auto fold4 = [](float a, float b) { return (float)(a + b); };
  float column8[32];
  FXF_UNROLL for (int c = 0; c < 32; ++c) column8[c] = 0.0f;
  fxf_pack<float, 4> x6[8];
  FXF_UNROLL
  for (int k = 0; k < 8; ++k) {
    const int at = (k * 32 + lane) * 4;
    if (at < length) {
      const int i1 = at;
      x6[k] = fxf_load<4>(in1 + i1);
    }
  }
  const int turns = team < row_blocks ? (int)((row_blocks - team + teams - 1) / teams) + 0 : 0;
  FXF_DYNAMIC(ring);
  char* const ring0 = ring + 0;
  FXF_UNROLL
  for (int s = 0; s < 2; ++s) {
    {
      const int slot = s % 3;
      const int row = ((int)s * teams + team) * 4 + fxf_thread() / 32;
      const bool live = s >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 8; ++k) {
        const int at = (k * 32 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          fxf_fetch<fxf_pack<float, 4>>(ring0 + ((slot * 8 + k) * 128 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
        }
      }
      fxf_commit_fetches();
    }
  }
  for (int turn = 0; turn < turns; ++turn) {
    {
      const int slot = (turn + 2) % 3;
      const int row = ((int)(turn + 2) * teams + team) * 4 + fxf_thread() / 32;
      const bool live = (turn + 2) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 8; ++k) {
        const int at = (k * 32 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          fxf_fetch<fxf_pack<float, 4>>(ring0 + ((slot * 8 + k) * 128 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
        }
      }
      fxf_commit_fetches();
    }
    fxf_await_fetches<2>();
    const int row = ((int)turn * teams + team) * 4 + fxf_thread() / 32;
    const bool live = turn >= 0 && row < rows;
    const int here = live ? row : 0;
    const int i0 = here;
    const int slot = turn % 3;
    fxf_pack<float, 4> x0[8];
    FXF_UNROLL
    for (int k = 0; k < 8; ++k) {
      const int at = (k * 32 + lane) * 4;
      if (live && at < length) {
        const int i1 = at;
        x0[k] = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 8 + k) * 128 + fxf_thread()) * 16);
      }
    }
    float part1[4];
    FXF_UNROLL for (int e = 0; e < 4; ++e) part1[e] = -(FXF_INF_F);
    FXF_UNROLL
    for (int k = 0; k < 8; ++k) {
      const int at = (k * 32 + lane) * 4;
      if (live && at < length) {
        const int i1 = at;
        FXF_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float v0 = fxf_get(x0[k], e);
          part1[e] = fxf_max(part1[e], (v0));
        }
      }
    }
    float acc1 = fxf_fold_parts<4>(part1, fold1);
    acc1 = fxf_fold_lanes<32>(acc1, fold1);
    const float v1 = (float)(acc1);  // amax
    float part4[4];
    FXF_UNROLL for (int e = 0; e < 4; ++e) part4[e] = 0.0f;
    FXF_UNROLL for (int k = 0; k < 8; ++k) fxf_renew(x0[k], zero);
    FXF_UNROLL
    for (int k = 0; k < 8; ++k) {
      const int at = (k * 32 + lane) * 4;
      if (live && at < length) {
        const int i1 = at;
        FXF_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float v0 = fxf_get(x0[k], e);
          const float v2 = v0-1.0f * v1;  // sub
          const float v3 = fxf_exp(v2);  // exp
          part4[e] = part4[e] + (v3);
        }
      }
    }
    float acc4 = fxf_fold_parts<4>(part4, fold4);
    acc4 = fxf_fold_lanes<32>(acc4, fold4);
    const float v4 = (float)(acc4);  // sum
    FXF_UNROLL for (int k = 0; k < 8; ++k) fxf_renew(x0[k], zero);
    FXF_UNROLL for (int k = 0; k < 8; ++k) fxf_renew(x6[k], zero);
    FXF_UNROLL
    for (int k = 0; k < 8; ++k) {
      const int at = (k * 32 + lane) * 4;
      if (live && at < length) {
        const int i1 = at;
        float y0[4];
        FXF_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float v0 = fxf_get(x0[k], e);
          const float v2 = v0-1.0f * v1;  // sub
          const float v3 = fxf_exp(v2);  // exp
          const float v5 = v3 / v4;  // div
          const float v6 = fxf_get(x6[k], e);
          const float v7 = v5 * v6;  // mul
          column8[k * 4 + e] = column8[k * 4 + e] + (v5);
          y0[e] = v7;
        }
        fxf_store(out0 + i0 * out0_stride0 + i1, y0);
      }
    }
  }
  const int partial = (int)team * 4 + fxf_thread() / 32;
  FXF_UNROLL
  for (int c = 0; c < 32; ++c) {
    const int at = (c / 4 * 32 + lane) * 4 + c % 4;
    if (at < length) {
      fxf_put_partial((float*)(workspace + columns8) + partial * length + at, column8[c]);
    }
  }
}
FXF_KERNEL(512) fxfuser_normalization_5dbd8bbc_columns(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  float* __restrict__ out1 = (float*)p.ptr[3];
  char* workspace = (char*)p.ptr[4];
  const int row_length = (int)p.n[0];
  const int teams = (int)p.n[1];
  const int row_blocks = (int)p.n[2];
  const int rows = (int)p.n[3];
  const int e0_stride0 = (int)p.n[4];
  const int reduced_count = (int)p.n[5];
  const int zero = (int)p.n[6];
  const int out0_stride0 = (int)p.n[7];
  const int columns8 = (int)p.n[8];
  const int partials = (int)p.n[9];
  const int kept_count = (int)p.n[10];
  const int lane = fxf_thread() % 16, deep = fxf_thread() / 16;
  const int length = row_length;
  const int at = (int)fxf_block() * 16 + lane;
  const bool live = at < length;
  const auto fold8 = [](float a, float b) { return (float)(a + b); };
  const auto join8 = [](fxf_sum<float> a, fxf_sum<float> b) { return fxf_join(a, b); };
  fxf_sum<float> acc8 = fxf_sum<float>{0.0f, 0};
  #pragma unroll 8
  for (int slab = deep; live && slab < partials; slab += 32) acc8 = join8(acc8, fxf_sum<float>{fxf_get_fresh((float*)(workspace + columns8) + slab * length + at), 0});
  typedef fxf_sum<float> state8;
  FXF_SHARED(state8, scratch8, 512);
  FXF_PLACE(scratch8, deep * 16 + lane, acc8);
  fxf_barrier();
  if (live && deep == 0) {
    const int i1 = at;
    const float v8 = (float)((fxf_total(fxf_fold_column<32>(scratch8, lane, 16, join8))));  // sum
    fxf_put(out1, i1, v8);
  }
}
