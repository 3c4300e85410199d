// normalization: index 32 bits, vector 4 (inputs 1, outputs 1), unroll 1, threads 256, inner cluster, 256 threads a row x 1 rows, 10 vectors a thread, split 1, cluster 4, 120 teams, refilled, 4 blocks an SM, grain 1
struct Params {
  void* ptr[2];
  long long n[8];
};

FXF_KERNEL(256, 4) fxfuser_normalization_5cd03b37(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int row_length = (int)p.n[0];
  const int share = (int)p.n[1];
  const int teams = (int)p.n[2];
  const int row_blocks = (int)p.n[3];
  const int rows = (int)p.n[4];
  const int e0_stride0 = (int)p.n[5];
  const int reduced_count = (int)p.n[6];
  const int out0_stride0 = (int)p.n[7];
  const int lane = fxf_thread() % 256;
  const int team = fxf_block() / 4, peer = fxf_block() % 4;
  const int length = row_length;
  const auto fold1 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  const auto fold4 = [](float a, float b) { return (float)(a + b); };
  const int turns = team < row_blocks ? (int)((row_blocks - team + teams - 1) / teams) + 0 : 0;
  FXF_DYNAMIC(ring);
  char* const ring0 = ring + 0;
  FXF_UNROLL
  for (int s = 0; s < 1; ++s) {
    {
      const int row = ((int)s * teams + team) * 1 + fxf_thread() / 256;
      const bool live = s >= 0 && row < rows;
      const int here = live ? row : 0;
      const int i0 = here;
      FXF_UNROLL
      for (int k = 0; k < 10; ++k) {
        const int at = (peer * share + k * 256 + lane) * 4;
        if (live && k * 256 + lane < share && at < length) {
          const int i1 = at;
          fxf_fetch<fxf_pack<float, 4>>(ring0 + (k * 256 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
        }
      }
      fxf_commit_fetches();
    }
  }
  typedef fxf_posted<float > state1;
  FXF_SHARED(state1, scratch1, 64);
  typedef fxf_posted<float > state4;
  FXF_SHARED(state4, scratch4, 64);
  FXF_EXCHANGE(exchange);
  fxf_open_exchange<4>(exchange);
  for (int turn = 0; turn < turns; ++turn) {
    fxf_await_fetches<0>();
    const int row = ((int)turn * teams + team) * 1 + fxf_thread() / 256;
    const bool live = turn >= 0 && row < rows;
    const int here = live ? row : 0;
    const int i0 = here;
    float part1[4];
    FXF_UNROLL for (int e = 0; e < 4; ++e) part1[e] = -(FXF_INF_F);
    FXF_UNROLL
    for (int k = 0; k < 10; ++k) {
      const int at = (peer * share + k * 256 + lane) * 4;
      if (live && k * 256 + lane < share && at < length) {
        const int i1 = at;
        const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + (k * 256 + fxf_thread()) * 16);
        FXF_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float v0 = fxf_get(x0, e);
          part1[e] = fxf_max(part1[e], (v0));
        }
      }
    }
    float acc1 = fxf_fold_parts<4>(part1, fold1);
    const int round0 = turn * 2 + 0;
    if (fxf_thread() == 0) fxf_expect_posts<4>(exchange, round0 % 2, 32 * ((int)sizeof(state1)));
    fxf_post_to_peers<4, 8>(acc1, scratch1, exchange, fold1, round0 % 2, peer);
    fxf_await_posts<4>(exchange, round0 % 2, round0 / 2 % 2);
    acc1 = fxf_fold_posted<32>(scratch1, fold1, round0 % 2);
    const float v1 = (float)(acc1);  // amax
    float part4[4];
    FXF_UNROLL for (int e = 0; e < 4; ++e) part4[e] = 0.0f;
    FXF_UNROLL
    for (int k = 0; k < 10; ++k) {
      const int at = (peer * share + k * 256 + lane) * 4;
      if (live && k * 256 + lane < share && at < length) {
        const int i1 = at;
        const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + (k * 256 + fxf_thread()) * 16);
        FXF_UNROLL
        for (int e = 0; e < 4; ++e) {
          const float v0 = fxf_get(x0, e);
          const float v2 = v0-1.0f * v1;  // sub
          const float v3 = fxf_exp(v2);  // exp
          part4[e] = part4[e] + (v3);
        }
      }
    }
    float acc4 = fxf_fold_parts<4>(part4, fold4);
    const int round1 = turn * 2 + 1;
    if (fxf_thread() == 0) fxf_expect_posts<4>(exchange, round1 % 2, 32 * ((int)sizeof(state4)));
    fxf_post_to_peers<4, 8>(acc4, scratch4, exchange, fold4, round1 % 2, peer);
    fxf_await_posts<4>(exchange, round1 % 2, round1 / 2 % 2);
    acc4 = fxf_fold_posted<32>(scratch4, fold4, round1 % 2);
    const float v4 = (float)(acc4);  // sum
    FXF_UNROLL
    for (int k = 0; k < 10; ++k) {
      const int at = (peer * share + k * 256 + lane) * 4;
      if (live && k * 256 + lane < share && at < length) {
        const int i1 = at;
        const auto x0 = fxf_fetched<fxf_pack<float, 4>>(ring0 + (k * 256 + fxf_thread()) * 16);
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
        {
          const int row = ((int)(turn + 1) * teams + team) * 1 + fxf_thread() / 256;
          const bool live = (turn + 1) >= 0 && row < rows;
          const int here = live ? row : 0;
          const int i0 = here;
          if (live) {
            fxf_fetch<fxf_pack<float, 4>>(ring0 + (k * 256 + fxf_thread()) * 16, in0 + i0 * e0_stride0 + i1);
          }
        }
      }
    }
    fxf_commit_fetches();
  }
  fxf_close_exchange<4>();
}
