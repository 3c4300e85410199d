// pointwise: index 32 bits, vector 4 (inputs 10, outputs 1), unroll 1, threads 256, grain 1
struct Params {
  void* ptr[3];
  long long n[2];
};

FXF_KERNEL(256) fxfuser_pointwise_08fcdb82(const FXF_PARAM Params p) {
  const float* __restrict__ in0 = (const float*)p.ptr[0];
  const long long* __restrict__ in1 = (const long long*)p.ptr[1];
  float* __restrict__ out0 = (float*)p.ptr[2];
  const int groups = (int)p.n[0];
  const int e2_offset = (int)p.n[1];
  fxf_random words4;
  const int first = (int)fxf_block() * 256 + fxf_thread();
  const int group = first;
  if (group < groups) {
    const int i0 = group * 4;
    const long long v1 = fxf_get(in1, 0);
    const long long v2 = (long long)(e2_offset);
    const long long v5 = 3865470566LL;
    const float v8 = 1.1111112f;
    const float v10 = 2.0f;
    const auto x0 = fxf_load<4>(in0 + i0);
    float y0[4];
    FXF_UNROLL
    for (int e = 0; e < 4; ++e) {
      const float v0 = fxf_get(x0, e);
      const long long v3 = (long long)((i0 + e));
      const long long v4 = (long long)(fxf_random_bits(words4, v1, v2, v3));  // philox
      const bool v6 = v4 < v5;  // lt
      const float v7 = v0 * (v6 ? 1.0f : 0.0f);  // mul
      const float v9 = v7 * v8;  // mul
      const float v11 = v9 * v10;  // mul
      y0[e] = v11;
    }
    fxf_store(out0 + i0, y0);
  }
}
