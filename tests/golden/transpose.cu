// transpose: index 32 bits, vector 4 (inputs 0, outputs 1), unroll 1, threads 128, tile 32 along axis 0, inputs 0 by 4, grain 1
struct Params {
  void* ptr[2];
  long long n[6];
};

FXF_KERNEL(128) fxfuser_transpose_f237aa38(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int tiles_across = (int)p.n[0];
  const int tiles_down = (int)p.n[1];
  const int size0 = (int)p.n[2];
  const int size1 = (int)p.n[3];
  const int e0_stride1 = (int)p.n[4];
  const int out0_stride0 = (int)p.n[5];
  const int block = fxf_block();
  const int first_across = block % tiles_across * 32;
  const int first_down = block / tiles_across % tiles_down * 32;
  const bool whole = first_across + 32 <= size1 && first_down + 32 <= size0;
  typedef fxf_pack<float, 1> word0;
  FXF_SHARED(word0, tile0, 1056);
  if (whole) {
    fxf_pack<float, 4> x0[2];
    FXF_UNROLL
    for (int u = 0; u < 2; ++u) {
      const int at = fxf_thread() + u * 128;
      const int fast = at % 8, slow = at / 8;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast * 4;
      {
        x0[u] = fxf_load<4>(in0 + i0 + i1 * e0_stride1);
      }
    }
    FXF_UNROLL
    for (int u = 0; u < 2; ++u) {
      const int at = fxf_thread() + u * 128;
      const int fast = at % 8, slow = at / 8;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast * 4;
      {
        FXF_UNROLL
        for (int w = 0; w < 4; ++w) {
          FXF_PLACE(tile0, slow * 33 + fast * 4 + w, fxf_part<1>(x0[u], w));
        }
      }
    }
  }
  else {
    fxf_pack<float, 4> x0[2];
    FXF_UNROLL
    for (int u = 0; u < 2; ++u) {
      const int at = fxf_thread() + u * 128;
      const int fast = at % 8, slow = at / 8;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast * 4;
      if (i1 < size1 && i0 < size0) {
        x0[u] = fxf_load<4>(in0 + i0 + i1 * e0_stride1);
      }
    }
    FXF_UNROLL
    for (int u = 0; u < 2; ++u) {
      const int at = fxf_thread() + u * 128;
      const int fast = at % 8, slow = at / 8;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast * 4;
      if (i1 < size1 && i0 < size0) {
        FXF_UNROLL
        for (int w = 0; w < 4; ++w) {
          FXF_PLACE(tile0, slow * 33 + fast * 4 + w, fxf_part<1>(x0[u], w));
        }
      }
    }
  }
  fxf_barrier();
  if (whole) {
    FXF_UNROLL
    for (int u = 0; u < 2; ++u) {
      const int at = fxf_thread() + u * 128;
      const int fast = at % 8 + at / 32 % 1 * 8, slow = at / 8 % 4 + at / 32 * 4;
      const int i1 = first_across + fast * 4;
      const int i0 = first_down + slow * 1;
      {
        word0 x0[4];
        FXF_UNROLL for (int e = 0; e < 4; ++e) x0[e] = FXF_TAKE(tile0, (fast * 4 + e) * 33 + slow);
        FXF_UNROLL
        for (int down = 0; down < 1; ++down) {
          const float v1 = 2.0f;
          float y0[4];
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0[e], down);
            const float v2 = v0 * v1;  // mul
            const float v3 = v2;
            y0[e] = v3;
          }
          fxf_store(out0 + i0 * out0_stride0 + i1, y0);
        }
      }
    }
  }
  else {
    FXF_UNROLL
    for (int u = 0; u < 2; ++u) {
      const int at = fxf_thread() + u * 128;
      const int fast = at % 8 + at / 32 % 1 * 8, slow = at / 8 % 4 + at / 32 * 4;
      const int i1 = first_across + fast * 4;
      const int i0 = first_down + slow * 1;
      if (i1 < size1 && i0 < size0) {
        word0 x0[4];
        FXF_UNROLL for (int e = 0; e < 4; ++e) x0[e] = FXF_TAKE(tile0, (fast * 4 + e) * 33 + slow);
        FXF_UNROLL
        for (int down = 0; down < 1; ++down) {
          const float v1 = 2.0f;
          float y0[4];
          FXF_UNROLL
          for (int e = 0; e < 4; ++e) {
            const float v0 = fxf_get(x0[e], down);
            const float v2 = v0 * v1;  // mul
            const float v3 = v2;
            y0[e] = v3;
          }
          fxf_store(out0 + i0 * out0_stride0 + i1, y0);
        }
      }
    }
  }
}
