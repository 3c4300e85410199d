// transpose: index 32 bits, vector 16 (inputs 0, outputs 1), unroll 1, threads 1, tile 64 along axis 0, inputs 0, grain 8
struct Params {
  void* ptr[2];
  long long n[4];
};

extern "C" void fxfuser_transpose_4667c362(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  const long long size0 = (long long)p->n[0];
  const long long size1 = (long long)p->n[1];
  const long long e0_stride1 = (long long)p->n[2];
  const long long out0_stride0 = (long long)p->n[3];
  for (long long item = begin; item < end; ++item) {
    const long long across = (size1 + 63) / 64, down = (size0 + 63) / 64;
    const long long i10 = item % across * 64, i00 = item / across % down * 64;
    const int i1_count = size1 - i10 < 64 ? (int)(size1 - i10) : 64;
    const int i0_count = size0 - i00 < 64 ? (int)(size0 - i00) : 64;
    float tile0[4096];
    const long long first0 = i00 + i10 * e0_stride1, step0 = i00 + (i10 + 1) * e0_stride1 - first0;
    fxf_turn(in0 + first0, step0, i1_count, i0_count, tile0, 64);
    for (int row = 0; row < i0_count; ++row) {
      const long long i0 = i00 + row;
      #pragma omp simd
      for (int column = 0; column < i1_count; ++column) {
        const long long i1 = i10 + column;
        const float v0 = fxf_get(tile0, row * 64 + column);
        const float v1 = 2.0f;
        const float v2 = v0 * v1;  // mul
        const float v3 = v2;
        fxf_put(out0, i0 * out0_stride0 + i1, v3);
      }
    }
  }
}
