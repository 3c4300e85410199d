// normalization: index 32 bits, vector 4 (inputs 11, outputs 11), unroll 1, threads 128, inner block, 128 threads a row x 1 rows, 2 vectors a thread, split 1, cluster 1, compensated sums, columns in 1056 slabs, 1056 teams, 4 stages, 8 blocks an SM, grain 1
struct Params {
  void* ptr[5];
  long long n[10];
};

FXF_KERNEL(128, 8) fxfuser_normalization_43eb9bc7(const FXF_PARAM Params p) {
  fxf_let_next_begin();
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
  const int out0_stride0 = (int)p.n[6];
  const int columns8 = (int)p.n[7];
  const int lane = fxf_thread() % 128;
  const int team = fxf_block();
  const int length = row_length;
  const auto fold1 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  const auto fold4 = [](float a, float b) { return (float)(a + b); };
  fxf_sum<float> column8[8];
  FXF_UNROLL for (int c = 0; c < 8; ++c) column8[c] = fxf_sum<float>{0.0f, 0};
  fxf_pack<float, 4> x6[2];
  FXF_UNROLL
  for (int k = 0; k < 2; ++k) {
    const int at = (k * 128 + lane) * 4;
    if (at < length) {
      const int i1 = at;
      x6[k] = fxf_load<4>(in1 + i1);
    }
  }
  const int turns = team < row_blocks ? (int)((row_blocks - team + teams - 1) / teams) + 2 : 0;
  FXF_DYNAMIC(ring);
  char* const ring0 = ring + 0;
  FXF_UNROLL
  for (int s = 0; s < 1; ++s) {
    {
      const int slot = s % 4;
      const int row = ((int)s * teams + team) * 1 + fxf_thread() / 128;
      const bool live = s >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int at = (k * 128 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          fxf_fetch<fxf_pack<float, 4>>(ring0 + ((slot * 2 + k) * 128 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
        }
      }
      fxf_commit_fetches();
    }
  }
  float past1[1];
  FXF_UNROLL for (int t = 0; t < 1; ++t) past1[t] = (float)0;
  typedef fxf_posted<float > state1;
  FXF_SHARED(state1, scratch1, 8);
  if (fxf_thread() < 4) FXF_PLACE(scratch1, 4 + fxf_thread(), (state1{-(FXF_INF_F)}));
  typedef fxf_posted<float > state4;
  FXF_SHARED(state4, scratch4, 8);
  if (fxf_thread() < 4) FXF_PLACE(scratch4, 4 + fxf_thread(), (state4{0.0f}));
  FXF_EXCHANGE(exchange);
  fxf_open_exchange<1>(exchange);
  for (int turn = 0; turn < turns; ++turn) {
    {
      const int slot = (turn + 1) % 4;
      const int row = ((int)(turn + 1) * teams + team) * 1 + fxf_thread() / 128;
      const bool live = (turn + 1) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int at = (k * 128 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          fxf_fetch<fxf_pack<float, 4>>(ring0 + ((slot * 2 + k) * 128 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
        }
      }
      fxf_commit_fetches();
    }
    fxf_await_fetches<1>();
    float acc1 = -(FXF_INF_F);
    float acc4 = 0.0f;
    float row1;
    {
      const int row = ((int)turn * teams + team) * 1 + fxf_thread() / 128;
      const bool live = turn >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = turn % 4;
      float part1[4];
      FXF_UNROLL for (int e = 0; e < 4; ++e) part1[e] = -(FXF_INF_F);
      FXF_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int at = (k * 128 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 2 + k) * 128 + fxf_thread()) * 16);
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0, e);
            part1[e] = fxf_max(part1[e], (v0));
          }
        }
      }
      acc1 = fxf_fold_parts<4>(part1, fold1);
    }
    fxf_await_posts<1>(exchange, (turn - 1) % 2, (turn - 1) / 2 % 2);
    {
      const int row = ((int)(turn - 2) * teams + team) * 1 + fxf_thread() / 128;
      const bool live = (turn - 2) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = (turn + 2) % 4;
      const auto acc4 = fxf_fold_posted<4>(scratch4, fold4, (turn + 1) % 2);
      const float v4 = (float)(acc4);  // sum
      const float v1 = past1[0];
      FXF_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int at = (k * 128 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 2 + k) * 128 + fxf_thread()) * 16);
          float y0[4];
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0, e);
            const float v2 = v0-1.0f * v1;  // sub
            const float v3 = fxf_exp(v2);  // exp
            const float v5 = v3 / v4;  // div
            const float v6 = fxf_get(x6[k], e);
            const float v7 = v5 * v6;  // mul
            column8[k * 4 + e].lost = column8[k * 4 + e].lost + (v5);
            y0[e] = v7;
          }
          fxf_store(out0 + i0 * out0_stride0 + i1, y0);
        }
      }
    }
    {
      const int row = ((int)(turn - 1) * teams + team) * 1 + fxf_thread() / 128;
      const bool live = (turn - 1) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = (turn + 3) % 4;
      const auto acc1 = fxf_fold_posted<4>(scratch1, fold1, (turn + 1) % 2);
      const float v1 = (float)(acc1);  // amax
      row1 = v1;
      float part4[4];
      FXF_UNROLL for (int e = 0; e < 4; ++e) part4[e] = 0.0f;
      FXF_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int at = (k * 128 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 2 + k) * 128 + fxf_thread()) * 16);
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0, e);
            const float v2 = v0-1.0f * v1;  // sub
            const float v3 = fxf_exp(v2);  // exp
            part4[e] = part4[e] + (v3);
          }
        }
      }
      acc4 = fxf_fold_parts<4>(part4, fold4);
    }
    fxf_post_to_peers<1, 4>(acc1, scratch1, exchange, fold1, turn % 2, 0);
    fxf_post_to_peers<1, 4>(acc4, scratch4, exchange, fold4, turn % 2, 0);
    past1[0] = row1;
    if (turn % 4 == 4 - 1) {
      FXF_UNROLL for (int c = 0; c < 8; ++c) column8[c] = fxf_settle(column8[c]);
    }
  }
  const int partial = (int)team * 1 + fxf_thread() / 128;
  FXF_UNROLL
  for (int c = 0; c < 8; ++c) {
    const int at = (c / 4 * 128 + lane) * 4 + c % 4;
    if (at < length) {
      fxf_put_partial((float*)(workspace + columns8) + partial * length + at, column8[c].value + column8[c].lost);
    }
  }
}
FXF_KERNEL(512) fxfuser_normalization_43eb9bc7_columns(const FXF_PARAM Params p) {
  fxf_await_previous();
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
  const int out0_stride0 = (int)p.n[6];
  const int columns8 = (int)p.n[7];
  const int partials = (int)p.n[8];
  const int kept_count = (int)p.n[9];
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
