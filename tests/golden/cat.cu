// pointwise: index 32 bits, vector 1 (inputs 00, outputs 0), unroll 1, threads 128, grain 1
struct Params {
  void* ptr[3];
  long long n[10];
};

FXF_KERNEL(128) fxfuser_pointwise_c24dd938(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  const int groups = (int)p.n[0];
  const int size1 = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int e0_offset = (int)p.n[3];
  const int e0_guard0_low = (int)p.n[4];
  const int e0_guard0_high = (int)p.n[5];
  const int e1_stride0 = (int)p.n[6];
  const int e1_guard0_high = (int)p.n[7];
  const int e2_bound0_high = (int)p.n[8];
  const int out0_stride0 = (int)p.n[9];
  const int first = (int)fxf_block() * 128 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i1 = group % size1;
    const int rest1 = group / size1;
    const int i0 = rest1;
    const float v0 = (i1 >= e0_guard0_low && i1 < e0_guard0_high) ? fxf_get(in0, i0 * e0_stride0 + i1 + e0_offset) : (float)0;
    const float v1 = (i1 >= 0 && i1 < e1_guard0_high) ? fxf_get(in1, i0 * e1_stride0 + i1) : (float)0;
    const float v2 = (i1 >= 0 && i1 < e2_bound0_high) ? v1 : v0;
    const float v3 = 2.0f;
    const float v4 = v2 * v3;  // mul
    fxf_put(out0, i0 * out0_stride0 + i1, v4);
  }
}
