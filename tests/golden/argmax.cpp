// reduction: index 32 bits, vector 8 (inputs 1, outputs 00), unroll 1, threads 1, inner multipass, 1 threads a row x 1 rows, 1 vectors a thread, split 1, cluster 1, grain 33
struct Params {
  void* ptr[3];
  long long n[3];
};

extern "C" void fxfuser_reduction_056897e5(const Params* p, long long begin, long long end) {
  const float* in0 = (const float*)p->ptr[0];
  float* out0 = (float*)p->ptr[1];
  long long* out1 = (long long*)p->ptr[2];
  const long long size1 = (long long)p->n[0];
  const long long e0_stride0 = (long long)p->n[1];
  const long long reduced_count = (long long)p->n[2];
  for (long long item = begin; item < end; ++item) {
    const long long i0 = item;
    float acc2 = -(FXF_INF_F);
    long long at2 = 0x7fffffffffffffffLL;
    const auto pass0 = [&](const long long i1) __attribute__((always_inline)) {
      const float v0 = fxf_get(in0, i0 * e0_stride0 + i1);
      const long long v1 = (long long)(i1);
      const float new2 = v0;
      const long long where2 = v1;
      if (fxf_isnan(new2) ? !fxf_isnan(acc2) || where2 < at2 : (!fxf_isnan(acc2) && (new2 > acc2 || (new2 == acc2 && where2 < at2)))) acc2 = new2, at2 = where2;
    };
    for (long long j = 0; j < size1; ++j) pass0(j);
    const float v2 = (float)((float)acc2);  // max_dim
    const long long v3 = (long long)(at2);  // max_dim
    fxf_put(out0, i0, v2);
    fxf_put(out1, i0, v3);
  }
}
