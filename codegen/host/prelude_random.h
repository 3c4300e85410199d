// Random bits for the host: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011).
// One counter serves four neighbouring elements; each computes all four words and takes its own. The words live in 64-bit
// integers, whose products vector units have.

static inline long long fxf_random_bits(long long seed, long long node, long long element) {
  const unsigned long long low = 0xffffffffull, group = (unsigned long long)element >> 2;
  unsigned long long x0 = group & low, x1 = group >> 32, x2 = (unsigned long long)node & low, x3 = (unsigned long long)node >> 32;
  unsigned long long k0 = (unsigned long long)seed & low, k1 = (unsigned long long)seed >> 32;
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = x0 * 0xd2511f53ull, b = x2 * 0xcd9e8d57ull;
    x0 = (b >> 32) ^ x1 ^ k0;
    x1 = b & low;
    x2 = (a >> 32) ^ x3 ^ k1;
    x3 = a & low;
    k0 = (k0 + 0x9e3779b9ull) & low;
    k1 = (k1 + 0xbb67ae85ull) & low;
  }
  const unsigned long long even = (element & 2) != 0 ? x2 : x0, odd = (element & 2) != 0 ? x3 : x1;
  return (long long)((element & 1) != 0 ? odd : even);
}
