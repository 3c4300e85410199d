// reduction: index 32 bits, vector 16 (inputs 1, outputs 0), unroll 2, threads 1, inner multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 64, cluster 1, grain 1
struct Params {
  void* ptr[3];
  long long n[4];
};

extern "C" void fxfuser_reduction_09342124(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  char* workspace = (char*)p->ptr[2];
  const long long split = (long long)p->n[0];
  const long long size0 = (long long)p->n[1];
  const long long partial1 = (long long)p->n[2];
  for (long long item = begin; item < end; ++item) {
    const long long row = item / split, slab = item % split;
    const long long total = size0;
    const long long low = total * slab / split, high = total * (slab + 1) / split;
    double acc1[32];
    for (int lane = 0; lane < 32; ++lane) acc1[lane] = 0.0f;
    const auto pass0 = [&](const long long i0, double& sum1) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0);
      sum1 = sum1 + (v0);
    };
    long long j0 = low;
    for (; j0 + 32 <= high; j0 += 32) {
      for (int line = 0; line < 2; ++line) __builtin_prefetch((const char*)(in0 + (j0 + 1024)) + line * 64, 0);
      #pragma omp simd
      for (int lane = 0; lane < 32; ++lane) pass0(j0 + lane, acc1[lane]);
    }
    for (int lane = 0; j0 < high; ++j0, ++lane) pass0(j0, acc1[lane]);
    for (int lane = 0; lane < 16; ++lane) acc1[lane] = acc1[lane] + acc1[lane + 16];
    for (int lane = 0; lane < 8; ++lane) acc1[lane] = acc1[lane] + acc1[lane + 8];
    for (int lane = 0; lane < 4; ++lane) acc1[lane] = acc1[lane] + acc1[lane + 4];
    for (int lane = 0; lane < 2; ++lane) acc1[lane] = acc1[lane] + acc1[lane + 2];
    for (int lane = 0; lane < 1; ++lane) acc1[lane] = acc1[lane] + acc1[lane + 1];
    *(double*)(workspace + partial1 + item * 8) = (double)acc1[0];
  }
}
extern "C" void fxfuser_reduction_09342124_finish(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  char* workspace = (char*)p->ptr[2];
  const long long split = (long long)p->n[0];
  const long long size0 = (long long)p->n[1];
  const long long partial1 = (long long)p->n[2];
  const long long reduced_count = (long long)p->n[3];
  for (long long item = begin; item < end; ++item) {
    double acc1 = 0.0f;
    for (long long slab = 0; slab < split; ++slab) {
      const double new1 = *(const double*)(workspace + partial1 + (item * split + slab) * 8);
      acc1 = acc1 + new1;
    }
    const float v1 = (float)((float)acc1);
    fxf_put(out0, 0, v1);
  }
}
