// pointwise: index 32 bits, vector 4 (inputs 1, outputs 1), unroll 1, threads 256, grain 1
struct Params {
  void* ptr[2];
  long long n[1];
};

FXF_KERNEL(256) fxfuser_pointwise_0cc478ad(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  float* __restrict__ out0 = (float*)p.ptr[1];
  const int groups = (int)p.n[0];
  const int first = (int)fxf_block() * 256 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i0 = group * 4;
    const float v1 = 2.0f;
    const auto x0 = fxf_load<4>(in0 + i0);
    float y0[4];
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const float v2 = v0 * v1;  // mul
      y0[e] = v2;
    }
    fxf_store(out0 + i0, y0);
  }
}
