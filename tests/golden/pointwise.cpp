// pointwise: index 32 bits, vector 16 (inputs 11, outputs 1), unroll 1, threads 1, grain 8192
struct Params {
  void* ptr[3];
};

extern "C" void fxfuser_pointwise_a46996e8(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  const float* in1 = (const float*)p->ptr[1];
  float* out0 = (float*)p->ptr[2];
  #pragma omp simd
  for (long long i0 = begin; i0 < end; ++i0) {
    const float v0 = fxf_get(in0, i0);
    const float v1 = fxf_sigmoid(v0);  // sigmoid
    const float v2 = fxf_get(in1, i0);
    const float v3 = v1 * v2;  // mul
    const float v4 = 1.0f;
    const float v5 = v3 + 1.0f * v4;  // add
    fxf_put(out0, i0, v5);
  }
}
