// transpose: index 32 bits, vector 4 (inputs 0, outputs 1), unroll 1, threads 256, tile 32 along axis 0, inputs 0, grain 1
struct Params {
  void* ptr[2];
  long long n[6];
};

FXF_KERNEL(256) fxfuser_transpose_b65ee324(const FXF_PARAM Params p) {
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
  FXF_SHARED(float, tile0, 1056);
  if (whole) {
    float x0[4];
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int at = fxf_thread() + u * 256;
      const int fast = at % 32, slow = at / 32;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast;
      {
        x0[u] = fxf_read(in0 + i0 + i1 * e0_stride1);
      }
    }
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int at = fxf_thread() + u * 256;
      const int fast = at % 32, slow = at / 32;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast;
      {
        FXF_PLACE(tile0, slow * 33 + fast, x0[u]);
      }
    }
  }
  else {
    float x0[4];
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int at = fxf_thread() + u * 256;
      const int fast = at % 32, slow = at / 32;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast;
      if (i1 < size1 && i0 < size0) {
        x0[u] = fxf_read(in0 + i0 + i1 * e0_stride1);
      }
    }
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int at = fxf_thread() + u * 256;
      const int fast = at % 32, slow = at / 32;
      const int i1 = first_across + slow;
      const int i0 = first_down + fast;
      if (i1 < size1 && i0 < size0) {
        FXF_PLACE(tile0, slow * 33 + fast, x0[u]);
      }
    }
  }
  fxf_barrier();
  if (whole) {
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int at = fxf_thread() + u * 256;
      const int fast = at % 32, slow = at / 32;
      const int i1 = first_across + fast;
      const int i0 = first_down + slow;
      {
        const float v0 = fxf_widen(FXF_TAKE(tile0, fast * 33 + slow));
        const float v1 = 2.0f;
        const float v2 = v0 * v1;  // mul
        const float v3 = v2;
        fxf_put(out0, i0 * out0_stride0 + i1, v3);
      }
    }
  }
  else {
    FXF_UNROLL
    for (int u = 0; u < 4; ++u) {
      const int at = fxf_thread() + u * 256;
      const int fast = at % 32, slow = at / 32;
      const int i1 = first_across + fast;
      const int i0 = first_down + slow;
      if (i1 < size1 && i0 < size0) {
        const float v0 = fxf_widen(FXF_TAKE(tile0, fast * 33 + slow));
        const float v1 = 2.0f;
        const float v2 = v0 * v1;  // mul
        const float v3 = v2;
        fxf_put(out0, i0 * out0_stride0 + i1, v3);
      }
    }
  }
}
