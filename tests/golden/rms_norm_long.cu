// normalization: index 32 bits, vector 4 (inputs 11, outputs 1), unroll 1, threads 512, inner cluster, 512 threads a row x 1 rows, 5 vectors a thread, split 1, cluster 4, 30 teams, 5 stages, 1 blocks an SM, grain 1
struct Params {
  void* ptr[3];
  long long n[8];
};

FXF_KERNEL(512, 1) fxfuser_normalization_3df2a69f(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  const int row_length = (int)p.n[0];
  const int teams = (int)p.n[1];
  const int row_blocks = (int)p.n[2];
  const int rows = (int)p.n[3];
  const int e0_stride0 = (int)p.n[4];
  const int reduced_count = (int)p.n[5];
  const int zero = (int)p.n[6];
  const int out0_stride0 = (int)p.n[7];
  const int lane = fxf_thread() % 512;
  const int team = fxf_block() / 4, peer = fxf_block() % 4;
  const int length = row_length;
  const auto fold2 = [](float a, float b) { return (float)(a + b); };
  fxf_pack<float, 4> x7[5];
  FXF_UNROLL
  for (int k = 0; k < 5; ++k) {
    const int at = ((k * 4 + peer) * 512 + lane) * 4;
    if (at < length) {
      const int i1 = at;
      x7[k] = fxf_load<4>(in1 + i1);
    }
  }
  const int turns = team < row_blocks ? (int)((row_blocks - team + teams - 1) / teams) + 1 : 0;
  FXF_DYNAMIC(ring);
  char* const ring0 = ring + 0;
  FXF_UNROLL
  for (int s = 0; s < 3; ++s) {
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
  typedef fxf_posted<float > state2;
  FXF_SHARED(state2, scratch2, 128);
  if (fxf_thread() < 64) FXF_PLACE(scratch2, 64 + fxf_thread(), (state2{0.0f}));
  FXF_EXCHANGE(exchange);
  fxf_open_exchange<4>(exchange);
  for (int turn = 0; turn < turns; ++turn) {
    {
      const int slot = (turn + 3) % 5;
      const int row = ((int)(turn + 3) * teams + team) * 1 + fxf_thread() / 512;
      const bool live = (turn + 3) >= 0 && row < rows;
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
    fxf_await_fetches<3>();
    float acc2 = 0.0f;
    {
      const int row = ((int)turn * teams + team) * 1 + fxf_thread() / 512;
      const bool live = turn >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = turn % 5;
      float part2[4];
      FXF_UNROLL for (int e = 0; e < 4; ++e) part2[e] = 0.0f;
      FXF_UNROLL
      for (int k = 0; k < 5; ++k) {
        const int at = ((k * 4 + peer) * 512 + lane) * 4;
        if (live && at < length) {
          const int i1 = at;
          const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + ((slot * 5 + k) * 512 + fxf_thread()) * 16);
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0, e);
            const float v1 = v0 * v0;  // mul
            part2[e] = part2[e] + (v1);
          }
        }
      }
      acc2 = fxf_fold_parts<4>(part2, fold2);
    }
    if (turn > 0) fxf_await_posts<4>(exchange, (turn - 1) % 2, (turn - 1) / 2 % 2);
    {
      const int row = ((int)(turn - 1) * teams + team) * 1 + fxf_thread() / 512;
      const bool live = (turn - 1) >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      const int slot = (turn + 4) % 5;
      const auto acc2 = fxf_fold_posted<64>(scratch2, fold2, (turn + 1) % 2);
      const float v2 = (float)(acc2 / (float)(double)reduced_count);  // mean
      const float v3 = 1e-06f;
      const float v4 = v2 + 1.0f * v3;  // add
      const float v5 = fxf_rsqrt(v4);  // rsqrt
      FXF_UNROLL for (int k = 0; k < 5; ++k) fxf_renew(x7[k], zero);
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
            const float v6 = v0 * v5;  // mul
            const float v7 = fxf_get(x7[k], e);
            const float v8 = v6 * v7;  // mul
            y0[e] = v8;
          }
          fxf_store(out0 + i0 * out0_stride0 + i1, y0);
        }
      }
    }
    if (fxf_thread() == 0) fxf_expect_posts<4>(exchange, turn % 2, 64 * ((int)sizeof(state2)));
    fxf_post_to_peers<4, 16>(acc2, scratch2, exchange, fold2, turn % 2, peer);
  }
  if (turns > 0) fxf_await_posts<4>(exchange, (turns - 1) % 2, (turns - 1) / 2 % 2);
  fxf_close_exchange<4>();
}
