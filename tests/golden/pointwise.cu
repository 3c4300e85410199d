// pointwise: index 32 bits, vector 4 (inputs 11, outputs 1), unroll 1, threads 128, grain 1
struct Params {
  void* ptr[3];
  long long n[1];
};

FXF_KERNEL(128) fxfuser_pointwise_f172d673(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const float* __restrict__ in1 = (const float*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  const int groups = (int)p.n[0];
  const int first = (int)fxf_block() * 128 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i0 = group * 4;
    const float v4 = 1.0f;
    const auto x0 = fxf_load<4>(in0 + i0);
    const auto x2 = fxf_load<4>(in1 + i0);
    float y0[4];
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const float v1 = fxf_sigmoid(v0);  // sigmoid
      const float v2 = fxf_get(x2, e);
      const float v3 = v1 * v2;  // mul
      const float v5 = v3 + 1.0f * v4;  // add
      y0[e] = v5;
    }
    fxf_store(out0 + i0, y0);
  }
}
