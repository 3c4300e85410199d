// normalization: index 32 bits, vector 4 (inputs 1, outputs 1), unroll 1, threads 512, inner cluster, 512 threads a row x 1 rows, 5 vectors a thread, split 1, cluster 4, 30 teams, 5 stages, 1 blocks an SM, grain 1
struct Params {
  void* ptr[2];
  long long n[7];
};

FXF_KERNEL(512, 1) fxfuser_normalization_7f04f136(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int row_length = (int)p.n[0];
  const int teams = (int)p.n[1];
  const int row_blocks = (int)p.n[2];
  const int rows = (int)p.n[3];
  const int e0_stride0 = (int)p.n[4];
  const int reduced_count = (int)p.n[5];
  const int out0_stride0 = (int)p.n[6];
  const int lane = fxf_thread() % 512;
  const int team = fxf_block() / 4, peer = fxf_block() % 4;
  const int length = row_length;
  const auto fold1 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  const auto fold4 = [](float a, float b) { return (float)(a + b); };
  const int turns = team < row_blocks ? (int)((row_blocks - team + teams - 1) / teams) + 2 : 0;
  FXF_DYNAMIC(ring);
  char* const ring0 = ring + 0;
  FXF_UNROLL
  for (int s = 0; s < 2; ++s) {
    {
      const int slot = s % 5;
      const int row = ((int)s * teams + team) * 1 + fxf_thread() / 512;
      const bool live = s >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = ((k * 4 + peer) * 512 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          fxf_fetch<fxf_pack<float, 4>>(ring0 + ((slot * 5 + k) * 512 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
        }
      }
      fxf_commit_fetches();
    }
  }
  float past1[1];
  FXF_UNROLL for (int t = 0; t < 1; ++t) past1[t] = (float)0;
  typedef fxf_posted<float > state1;
  FXF_SHARED(state1, scratch1, 128);
  if (fxf_thread() < 64) FXF_PLACE(scratch1, 64 + fxf_thread(), (state1{-(FXF_INF_F)}));
  typedef fxf_posted<float > state4;
  FXF_SHARED(state4, scratch4, 128);
  if (fxf_thread() < 64) FXF_PLACE(scratch4, 64 + fxf_thread(), (state4{0.0f}));
  FXF_EXCHANGE(exchange);
  fxf_open_exchange<4>(exchange);
  for (int turn = 0; turn < turns; ++turn) {
    {
      const int slot = (turn + 2) % 5;
      const int row = ((int)(turn + 2) * teams + team) * 1 + fxf_thread() / 512;
      const bool live = (turn + 2) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = ((k * 4 + peer) * 512 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          fxf_fetch<fxf_pack<float, 4>>(ring0 + ((slot * 5 + k) * 512 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
        }
      }
      fxf_commit_fetches();
    }
    fxf_await_fetches<2>();
    float acc1 = -(FXF_INF_F);
    float acc4 = 0.0f;
    float row1;
    {
      const int row = ((int)turn * teams + team) * 1 + fxf_thread() / 512;
      const bool live = turn >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = turn % 5;
      float part1[4];
      FXF_UNROLL for (int e = 0; e < 4; ++e) part1[e] = -(FXF_INF_F);
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = ((k * 4 + peer) * 512 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 5 + k) * 512 + fxf_thread()) * 16);
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0, e);
            part1[e] = fxf_max(part1[e], (v0));
          }
        }
      }
      acc1 = fxf_fold_parts<4>(part1, fold1);
    }
    if (turn > 0) fxf_await_posts<4>(exchange, (turn - 1) % 2, (turn - 1) / 2 % 2);
    {
      const int row = ((int)(turn - 2) * teams + team) * 1 + fxf_thread() / 512;
      const bool live = (turn - 2) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = (turn + 3) % 5;
      const auto acc4 = fxf_fold_posted<64>(scratch4, fold4, (turn + 1) % 2);
      const float v4 = (float)(acc4);  // sum
      const float v1 = past1[0];
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = ((k * 4 + peer) * 512 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 5 + k) * 512 + fxf_thread()) * 16);
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
    }
    {
      const int row = ((int)(turn - 1) * teams + team) * 1 + fxf_thread() / 512;
      const bool live = (turn - 1) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = (turn + 4) % 5;
      const auto acc1 = fxf_fold_posted<64>(scratch1, fold1, (turn + 1) % 2);
      const float v1 = (float)(acc1);  // amax
      row1 = v1;
      float part4[4];
      FXF_UNROLL for (int e = 0; e < 4; ++e) part4[e] = 0.0f;
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = ((k * 4 + peer) * 512 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 5 + k) * 512 + fxf_thread()) * 16);
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
    if (fxf_thread() == 0) fxf_expect_posts<4>(exchange, turn % 2, 64 * ((int)sizeof(state1) + (int)sizeof(state4)));
    fxf_post_to_peers<4, 16>(acc1, scratch1, exchange, fold1, turn % 2, peer);
    fxf_post_to_peers<4, 16>(acc4, scratch4, exchange, fold4, turn % 2, peer);
    past1[0] = row1;
  }
  if (turns > 0) fxf_await_posts<4>(exchange, (turns - 1) % 2, (turns - 1) / 2 % 2);
  fxf_close_exchange<4>();
}
