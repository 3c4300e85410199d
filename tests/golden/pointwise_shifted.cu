// pointwise: index 32 bits, vector 8 (inputs 11, outputs 1), unroll 1, threads 256, shifted rows, inputs 01 across, grain 1
struct Params {
  void* ptr[3];
  long long n[7];
};

FXF_KERNEL(256) fxfuser_pointwise_6a95785d(const FXF_PARAM Params p) {
  const fxf_bfloat16* __restrict__ in0 = (const fxf_bfloat16*)p.ptr[0];
  const fxf_bfloat16* __restrict__ in1 = (const fxf_bfloat16*)p.ptr[1];
  fxf_bfloat16* __restrict__ out0 = (fxf_bfloat16*)p.ptr[2];
  const int groups = (int)p.n[0];
  const int inner_groups = (int)p.n[1];
  const int size1 = (int)p.n[2];
  const int out0_stride0 = (int)p.n[3];
  const int e0_stride0 = (int)p.n[4];
  const int e0_end = (int)p.n[5];
  const int e1_end = (int)p.n[6];
  const int first = (int)fxf_block() * 256 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int outer = group / inner_groups;
    const int i0 = outer;
    const int i1 = group % inner_groups * 8 - (int)((i0 * out0_stride0) & 7);
    if (i1 < size1) {
      const auto x0 = fxf_load_within<8>(in0, i0 * e0_stride0 + i1, e0_end);
      const auto x1 = fxf_load_across<8>(in1, i1, e1_end);
      float y0[8];
      FXF_UNROLL
      for (int e = 0; e < 8; ++e) {
        const bool inside = fxf_inside((i1 + e), size1);
        const float v0 = fxf_get(x0, e);
        const float v1 = fxf_get(x1, e);
        const float v2 = v0 + 1.0f * v1;  // add
        const float v3 = fxf_narrow_gelu(v2);  // gelu_erf
        y0[e] = v3;
      }
      fxf_store_inside(out0, i0 * out0_stride0 + i1, y0, i1, size1);
    }
  }
}
