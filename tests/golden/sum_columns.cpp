// reduction: index 32 bits, vector 16 (inputs 1, outputs 1), unroll 1, threads 1, columns multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 4, cluster 1, grain 4
struct Params {
  void* ptr[3];
  long long n[6];
};

extern "C" void fxfuser_reduction_63f3125f(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  char* workspace = (char*)p->ptr[2];
  const long long split = (long long)p->n[0];
  const long long size1 = (long long)p->n[1];
  const long long size0 = (long long)p->n[2];
  const long long e0_stride0 = (long long)p->n[3];
  const long long partial1 = (long long)p->n[4];
  for (long long item = begin; item < end; ++item) {
    const long long tile = item / split, slab = item % split;
    const long long blocks = (size1 + 63) / 64;
    const long long start = tile % blocks * 64;
    const int width = size1 - start < 64 ? (int)(size1 - start) : 64;
    const long long total = size0;
    const long long low = total * slab / split, high = total * (slab + 1) / split;
    double acc1[64];
    for (int lane = 0; lane < 64; ++lane) acc1[lane] = 0.0f;
    for (long long at = low; at < high; ++at) {
      const long long i0 = at;
      #pragma omp simd
      for (int lane = 0; lane < width; ++lane) {
        const long long i1 = start + lane;
        const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
        acc1[lane] = acc1[lane] + (v0);
      }
    }
    for (int lane = 0; lane < width; ++lane) {
      const long long cell = ((0 * size1 + start + lane) * split + slab) * 8;
      *(double*)(workspace + partial1 + cell) = acc1[lane];
    }
  }
}
extern "C" void fxfuser_reduction_63f3125f_finish(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  char* workspace = (char*)p->ptr[2];
  const long long split = (long long)p->n[0];
  const long long size1 = (long long)p->n[1];
  const long long size0 = (long long)p->n[2];
  const long long e0_stride0 = (long long)p->n[3];
  const long long partial1 = (long long)p->n[4];
  const long long reduced_count = (long long)p->n[5];
  for (long long item = begin; item < end; ++item) {
    const long long i1 = item;
    double acc1 = 0.0f;
    for (long long slab = 0; slab < split; ++slab) {
      const double new1 = *(const double*)(workspace + partial1 + (item * split + slab) * 8);
      acc1 = acc1 + new1;
    }
    const float v1 = (float)((float)acc1);
    fxf_put(out0, i1, v1);
  }
}
