// normalization: index 32 bits, vector 8 (inputs 1, outputs 10), unroll 1, threads 128, inner warp, 32 threads a row x 4 rows, 5 vectors a thread, split 1, cluster 1, columns in 512 slabs, 512 teams, 4 stages, shifted rows (steady), inputs 0 across, 4 blocks an SM, grain 1
struct Params {
  void* ptr[4];
  long long n[12];
};

FXF_KERNEL(128, 4) fxfuser_normalization_5bcb0e04(const FXF_PARAM Params p) {
  fxf_let_next_begin();
  const fxf_bfloat16* __restrict__ in0 = (const fxf_bfloat16*)p.ptr[0];
  fxf_bfloat16* __restrict__ out0 = (fxf_bfloat16*)p.ptr[1];
  fxf_bfloat16* __restrict__ out1 = (fxf_bfloat16*)p.ptr[2];
  char* workspace = (char*)p.ptr[3];
  const int row_length = (int)p.n[0];
  const int out0_stride0 = (int)p.n[1];
  const int teams = (int)p.n[2];
  const int row_blocks = (int)p.n[3];
  const int rows = (int)p.n[4];
  const int e0_stride0 = (int)p.n[5];
  const int e0_end = (int)p.n[6];
  const int reduced_count = (int)p.n[7];
  const int zero = (int)p.n[8];
  const int columns8 = (int)p.n[9];
  const int lane = fxf_thread() % 32;
  const int team = fxf_block();
  const int length = row_length;
  const auto fold2 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  const auto fold5 = [](float a, float b) { return (float)(a + b); };
  float column8[40];
  FXF_UNROLL for (int c = 0; c < 40; ++c) column8[c] = 0.0f;
  const int first = (int)team * 4 + fxf_thread() / 32;
  const int shift = (int)((first * out0_stride0) & 7);
  const int end = length + shift;
  const int turns = team < row_blocks ? (int)((row_blocks - team + teams - 1) / teams) + 0 : 0;
  FXF_DYNAMIC(ring);
  char* const ring0 = ring + 0;
  FXF_UNROLL
  for (int s = 0; s < 3; ++s) {
    {
      const int slot = s % 4;
      const int row = ((int)s * teams + team) * 4 + fxf_thread() / 32;
      const bool live = s >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = (k * 32 + lane) * 8;
        if (live && at < end) {
          const int i1 = at - shift;
          fxf_fetch_within<fxf_pack<fxf_bfloat16, 8>>(ring0 + ((slot * 5 + k) * 128 + fxf_thread()) * 16, in0, i0 * e0_stride0 + i1, e0_end);
        }
      }
      fxf_commit_fetches();
    }
  }
  for (int turn = 0; turn < turns; ++turn) {
    {
      const int slot = (turn + 3) % 4;
      const int row = ((int)(turn + 3) * teams + team) * 4 + fxf_thread() / 32;
      const bool live = (turn + 3) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = (k * 32 + lane) * 8;
        if (live && at < end) {
          const int i1 = at - shift;
          fxf_fetch_within<fxf_pack<fxf_bfloat16, 8>>(ring0 + ((slot * 5 + k) * 128 + fxf_thread()) * 16, in0, i0 * e0_stride0 + i1, e0_end);
        }
      }
      fxf_commit_fetches();
    }
    fxf_await_fetches<3>();
    const int row = ((int)turn * teams + team) * 4 + fxf_thread() / 32;
    const bool live = turn >= 0 && row < rows;
    const int here = live ? row : 0;
    const int i0 = here;
    const int slot = turn % 4;
    fxf_pack<fxf_bfloat16, 8> x0[5];
    FXF_UNROLL
    for (int k = 0; k < 5; ++k) {
      const int at = (k * 32 + lane) * 8;
      if (live && at < end) {
        const int i1 = at - shift;
        x0[k] = fxf_fetched<fxf_pack<fxf_bfloat16, 8>>(ring0 + ((slot * 5 + k) * 128 + fxf_thread()) * 16);
      }
    }
    float part2[8];
    FXF_UNROLL for (int e = 0; e < 8; ++e) part2[e] = -(FXF_INF_F);
    FXF_UNROLL
    for (int k = 0; k < 5; ++k) {
      const int at = (k * 32 + lane) * 8;
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
    acc2 = fxf_fold_lanes<32>(acc2, fold2);
    const float v2 = (float)(acc2);  // amax
    float part5[8];
    FXF_UNROLL for (int e = 0; e < 8; ++e) part5[e] = 0.0f;
    FXF_UNROLL for (int k = 0; k < 5; ++k) fxf_renew(x0[k], zero);
    FXF_UNROLL
    for (int k = 0; k < 5; ++k) {
      const int at = (k * 32 + lane) * 8;
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
    acc5 = fxf_fold_lanes<32>(acc5, fold5);
    const float v5 = (float)(acc5);  // sum
    FXF_UNROLL for (int k = 0; k < 5; ++k) fxf_renew(x0[k], zero);
    FXF_UNROLL
    for (int k = 0; k < 5; ++k) {
      const int at = (k * 32 + lane) * 8;
      if (live && at < end) {
        const int i1 = at - shift;
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
          column8[k * 8 + e] = column8[k * 8 + e] + (v7);
          y0[e] = v7;
        }
        fxf_store_inside(out0, i0 * out0_stride0 + i1, y0, i1, length);
      }
    }
  }
  const int partial = (int)team * 4 + fxf_thread() / 32;
  FXF_UNROLL
  for (int c = 0; c < 40; ++c) {
    const int at = (c / 8 * 32 + lane) * 8 + c % 8 - shift;
    if (fxf_inside(at, length)) {
      fxf_put_partial((float*)(workspace + columns8) + partial * length + at, column8[c]);
    }
  }
}
FXF_KERNEL(512) fxfuser_normalization_5bcb0e04_columns(const FXF_PARAM Params p) {
  fxf_await_previous();
  const fxf_bfloat16* __restrict__ in0 = (const fxf_bfloat16*)p.ptr[0];
  fxf_bfloat16* __restrict__ out0 = (fxf_bfloat16*)p.ptr[1];
  fxf_bfloat16* __restrict__ out1 = (fxf_bfloat16*)p.ptr[2];
  char* workspace = (char*)p.ptr[3];
  const int row_length = (int)p.n[0];
  const int out0_stride0 = (int)p.n[1];
  const int teams = (int)p.n[2];
  const int row_blocks = (int)p.n[3];
  const int rows = (int)p.n[4];
  const int e0_stride0 = (int)p.n[5];
  const int e0_end = (int)p.n[6];
  const int reduced_count = (int)p.n[7];
  const int zero = (int)p.n[8];
  const int columns8 = (int)p.n[9];
  const int partials = (int)p.n[10];
  const int kept_count = (int)p.n[11];
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
