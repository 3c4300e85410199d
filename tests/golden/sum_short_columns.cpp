// reduction: index 32 bits, vector 1 (inputs 00, outputs 0), unroll 1, threads 1, columns multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 64, cluster 1, grain 1
struct Params {
  void* ptr[4];
  long long n[6];
};

extern "C" void fxfuser_reduction_0e4a2a3b(const Params* p, long long begin, long long end) {
  const fxf_bfloat16* in0 = (const fxf_bfloat16*)p->ptr[0];
  const fxf_bfloat16* in1 = (const fxf_bfloat16*)p->ptr[1];
  fxf_bfloat16* out0 = (fxf_bfloat16*)p->ptr[2];
  char* workspace = (char*)p->ptr[3];
  const long long split = (long long)p->n[0];
  const long long size1 = (long long)p->n[1];
  const long long size0 = (long long)p->n[2];
  const long long e0_stride0 = (long long)p->n[3];
  const long long partial3 = (long long)p->n[4];
  for (long long item = begin; item < end; ++item) {
    const long long tile = item / split, slab = item % split;
    const long long blocks = (size1 + 63) / 64;
    const long long start = tile % blocks * 64;
    const int width = size1 - start < 64 ? (int)(size1 - start) : 64;
    const long long total = size0;
    const long long low = total * slab / split, high = total * (slab + 1) / split;
    float r1[64];
    #pragma omp simd
    for (int lane = 0; lane < width; ++lane) {
      const long long i1 = start + lane;
      const float v1 = fxf_get(in1, i1);
      r1[lane] = v1;
    }
    double acc3[64];
    for (int lane = 0; lane < 64; ++lane) acc3[lane] = 0.0f;
    for (long long at = low; at < high; ++at) {
      const long long i0 = at;
      #pragma omp simd
      for (int lane = 0; lane < width; ++lane) {
        const long long i1 = start + lane;
        const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
        const float v2 = v0 * r1[lane];  // mul
        acc3[lane] = acc3[lane] + (v2);
      }
    }
    for (int lane = 0; lane < width; ++lane) {
      const long long cell = ((0 * size1 + start + lane) * split + slab) * 8;
      *(double*)(workspace + partial3 + cell) = acc3[lane];
    }
  }
}
extern "C" void fxfuser_reduction_0e4a2a3b_finish(const Params* p, long long begin, long long end) {
  const fxf_bfloat16* in0 = (const fxf_bfloat16*)p->ptr[0];
  const fxf_bfloat16* in1 = (const fxf_bfloat16*)p->ptr[1];
  fxf_bfloat16* out0 = (fxf_bfloat16*)p->ptr[2];
  char* workspace = (char*)p->ptr[3];
  const long long split = (long long)p->n[0];
  const long long size1 = (long long)p->n[1];
  const long long size0 = (long long)p->n[2];
  const long long e0_stride0 = (long long)p->n[3];
  const long long partial3 = (long long)p->n[4];
  const long long reduced_count = (long long)p->n[5];
  for (long long item = begin; item < end; ++item) {
    const long long i1 = item;
    double acc3 = 0.0f;
    for (long long slab = 0; slab < split; ++slab) {
      const double new3 = *(const double*)(workspace + partial3 + (item * split + slab) * 8);
      acc3 = acc3 + new3;
    }
    const float v3 = (float)((float)acc3);
    fxf_put(out0, i1, v3);
  }
}
