// pointwise: index 32 bits, vector 1 (inputs 00, outputs 0), unroll 1, threads 128, grain 1
struct Params {
  void* ptr[3];
  long long n[5];
};

FXF_KERNEL(128) fxfuser_pointwise_dfca5c8d(const FXF_PARAM Params p) {
  const long long* __restrict__ in0 = (const long long*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  const int groups = (int)p.n[0];
  const int size1 = (int)p.n[1];
  const int e1_index0_extent = (int)p.n[2];
  const int e1_index0_stride = (int)p.n[3];
  const int out0_stride0 = (int)p.n[4];
  const int first = (int)fxf_block() * 128 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i1 = group % size1;
    const int rest1 = group / size1;
    const int i0 = rest1;
    const long long v0 = fxf_get(in0, i0);
    const float v1 = fxf_get(in1, i1 + fxf_wrap<int>(v0, e1_index0_extent) * e1_index0_stride);
    const float v2 = 2.0f;
    const float v3 = v1 * v2;  // mul
    fxf_put(out0, i0 * out0_stride0 + i1, v3);
  }
}
