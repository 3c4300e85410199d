// pointwise: index 32 bits, vector 1 (inputs 0, outputs 0), unroll 1, threads 128, grain 1
struct Params {
  void* ptr[2];
  long long n[4];
};

FXF_KERNEL(128) fxfuser_pointwise_4eaa4b6d(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int groups = (int)p.n[0];
  const int size1 = (int)p.n[1];
  const int e0_stride0 = (int)p.n[2];
  const int out0_stride0 = (int)p.n[3];
  const int first = (int)fxf_block() * 128 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i1 = group % size1;
    const int rest1 = group / size1;
    const int i0 = rest1;
    const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
    const float v1 = 2.0f;
    const float v2 = v0 * v1;  // mul
    fxf_put(out0, i0 * out0_stride0 + i1, v2);
  }
}
