// reduction: index 32 bits, vector 1 (inputs 0, outputs 0), unroll 8, threads 256, columns multipass, 8 threads a row x 32 rows, 1 vectors a thread, split 1, cluster 1, grain 1
struct Params {
  void* ptr[2];
  long long n[5];
};

FXF_KERNEL(256) fxfuser_reduction_e72616f2(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int tiles = (int)p.n[0];
  const int size1 = (int)p.n[1];
  const int column_length = (int)p.n[2];
  const int e0_stride0 = (int)p.n[3];
  const int reduced_count = (int)p.n[4];
  const int lane = fxf_thread() % 8, deep = fxf_thread() / 8;
  const int i1 = ((int)fxf_block() % tiles * 8 + lane) * 1;
  const bool live = i1 < size1;
  const int length = column_length;
  const auto fold1 = [](float a, float b) { return (float)(fxf_max(a, b)); };
  float acc1[1];
  FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = -(FXF_INF_F);
  {
    int first = deep;
    for (; live && first + 224 < length; first += 256) {
      float x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32;
        const int i0 = at;
        FXF_UNROLL
        for (int e = 0; e < 1; ++e) {
          x0[u * 1 + e] = fxf_get(in0, i0 * e0_stride0 + i1);
        }
      }
      float run1[8];
      FXF_UNROLL for (int e = 0; e < 8; ++e) run1[e] = -(FXF_INF_F);
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32;
        const int i0 = at;
        FXF_UNROLL
        for (int e = 0; e < 1; ++e) {
          const float v0 = x0[u * 1 + e];
          run1[e * 8 + u] = fxf_max(run1[e * 8 + u], (v0));
        }
      }
      FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = fold1(acc1[e], fxf_fold_parts<8>(run1 + e * 8, fold1));
    }
    if (live && first < length) {
      float x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32 < length ? first + u * 32 : length - 1;
        const int i0 = at;
        FXF_UNROLL
        for (int e = 0; e < 1; ++e) {
          x0[u * 1 + e] = fxf_get(in0, i0 * e0_stride0 + i1);
        }
      }
      float run1[8];
      FXF_UNROLL for (int e = 0; e < 8; ++e) run1[e] = -(FXF_INF_F);
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32;
        if (at < length) {
          const int i0 = at;
          FXF_UNROLL
          for (int e = 0; e < 1; ++e) {
            const float v0 = x0[u * 1 + e];
            run1[e * 8 + u] = fxf_max(run1[e * 8 + u], (v0));
          }
        }
      }
      FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = fold1(acc1[e], fxf_fold_parts<8>(run1 + e * 8, fold1));
    }
  }
  typedef float state1;
  FXF_SHARED(state1, scratch1, 256);
  FXF_UNROLL for (int e = 0; e < 1; ++e) FXF_PLACE(scratch1, (deep * 1 + e) * 8 + lane, acc1[e]);
  fxf_barrier();
  for (int e = deep; e < 1; e += 32) FXF_PLACE(scratch1, e * 8 + lane, fxf_fold_column<32>(scratch1, e * 8 + lane, 8, fold1));
  fxf_barrier();
  FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = FXF_TAKE(scratch1, e * 8 + lane);
  float r1[1];  // amax
  FXF_UNROLL for (int e = 0; e < 1; ++e) r1[e] = (float)(acc1[e]);
  if (live && deep == 0) {
    FXF_UNROLL
    for (int e = 0; e < 1; ++e) {
      fxf_put(out0, i1, r1[e]);
    }
  }
}

// pointwise: index 32 bits, vector 4 (inputs 11, outputs 1), unroll 1, threads 128, grain 1
struct Params {
  void* ptr[3];
  long long n[4];
};

FXF_KERNEL(128) fxfuser_pointwise_cf7aa998(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  const int groups = (int)p.n[0];
  const int inner_groups = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int out0_stride0 = (int)p.n[3];
  const int first = (int)fxf_block() * 128 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i1 = group % inner_groups * 4;
    const int outer = group / inner_groups;
    const int i0 = outer;
    const auto x0 = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
    const auto x1 = fxf_load<4>(in1 + i1);
    float y0[4];
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const float v1 = fxf_get(x1, e);
      const float v2 = v0-1.0f * v1;  // sub
      const float v3 = fxf_exp(v2);  // exp
      y0[e] = v3;
    }
    fxf_store(out0 + i0 * out0_stride0 + i1, y0);
  }
}

// reduction: index 32 bits, vector 1 (inputs 0, outputs 0), unroll 8, threads 256, columns multipass, 8 threads a row x 32 rows, 1 vectors a thread, split 1, cluster 1, grain 1
struct Params {
  void* ptr[2];
  long long n[5];
};

FXF_KERNEL(256) fxfuser_reduction_f4b22db2(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int tiles = (int)p.n[0];
  const int size1 = (int)p.n[1];
  const int column_length = (int)p.n[2];
  const int e0_stride0 = (int)p.n[3];
  const int reduced_count = (int)p.n[4];
  const int lane = fxf_thread() % 8, deep = fxf_thread() / 8;
  const int i1 = ((int)fxf_block() % tiles * 8 + lane) * 1;
  const bool live = i1 < size1;
  const int length = column_length;
  const auto fold1 = [](float a, float b) { return (float)(a + b); };
  float acc1[1];
  FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = 0.0f;
  {
    int first = deep;
    for (; live && first + 224 < length; first += 256) {
      float x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32;
        const int i0 = at;
        FXF_UNROLL
        for (int e = 0; e < 1; ++e) {
          x0[u * 1 + e] = fxf_get(in0, i0 * e0_stride0 + i1);
        }
      }
      float run1[8];
      FXF_UNROLL for (int e = 0; e < 8; ++e) run1[e] = 0.0f;
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32;
        const int i0 = at;
        FXF_UNROLL
        for (int e = 0; e < 1; ++e) {
          const float v0 = x0[u * 1 + e];
          run1[e * 8 + u] = run1[e * 8 + u] + (v0);
        }
      }
      FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = fold1(acc1[e], fxf_fold_parts<8>(run1 + e * 8, fold1));
    }
    if (live && first < length) {
      float x0[8];
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32 < length ? first + u * 32 : length - 1;
        const int i0 = at;
        FXF_UNROLL
        for (int e = 0; e < 1; ++e) {
          x0[u * 1 + e] = fxf_get(in0, i0 * e0_stride0 + i1);
        }
      }
      float run1[8];
      FXF_UNROLL for (int e = 0; e < 8; ++e) run1[e] = 0.0f;
      FXF_UNROLL
      for (int u = 0; u < 8; ++u) {
        const int at = first + u * 32;
        if (at < length) {
          const int i0 = at;
          FXF_UNROLL
          for (int e = 0; e < 1; ++e) {
            const float v0 = x0[u * 1 + e];
            run1[e * 8 + u] = run1[e * 8 + u] + (v0);
          }
        }
      }
      FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = fold1(acc1[e], fxf_fold_parts<8>(run1 + e * 8, fold1));
    }
  }
  typedef float state1;
  FXF_SHARED(state1, scratch1, 256);
  FXF_UNROLL for (int e = 0; e < 1; ++e) FXF_PLACE(scratch1, (deep * 1 + e) * 8 + lane, acc1[e]);
  fxf_barrier();
  for (int e = deep; e < 1; e += 32) FXF_PLACE(scratch1, e * 8 + lane, fxf_fold_column<32>(scratch1, e * 8 + lane, 8, fold1));
  fxf_barrier();
  FXF_UNROLL for (int e = 0; e < 1; ++e) acc1[e] = FXF_TAKE(scratch1, e * 8 + lane);
  float r1[1];  // sum
  FXF_UNROLL for (int e = 0; e < 1; ++e) r1[e] = (float)(acc1[e]);
  if (live && deep == 0) {
    FXF_UNROLL
    for (int e = 0; e < 1; ++e) {
      fxf_put(out0, i1, r1[e]);
    }
  }
}

// pointwise: index 32 bits, vector 4 (inputs 11, outputs 1), unroll 1, threads 128, grain 1
struct Params {
  void* ptr[3];
  long long n[4];
};

FXF_KERNEL(128) fxfuser_pointwise_938c992b(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  const int groups = (int)p.n[0];
  const int inner_groups = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int out0_stride0 = (int)p.n[3];
  const int first = (int)fxf_block() * 128 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i1 = group % inner_groups * 4;
    const int outer = group / inner_groups;
    const int i0 = outer;
    const auto x0 = fxf_load<4>(in0 + i0 * e0_stride0 + i1);
    const auto x1 = fxf_load<4>(in1 + i1);
    float y0[4];
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const float v1 = fxf_get(x1, e);
      const float v2 = v0 / v1;  // div
      y0[e] = v2;
    }
    fxf_store(out0 + i0 * out0_stride0 + i1, y0);
  }
}
