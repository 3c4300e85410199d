// Random bits: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). A counter
// gives four words, which serve four neighbouring elements: a thread keeps the last four, so that a neighbour costs no rounds.

struct fxf_random {
  unsigned long long group = ~0ull;  // of the words that are kept; no element is in this one
  unsigned words[4];
};

FXF_INLINE void fxf_draw(fxf_random& kept, long long seed, long long node) {
  unsigned x0 = (unsigned)kept.group, x1 = (unsigned)(kept.group >> 32), x2 = (unsigned)node, x3 = (unsigned)((unsigned long long)node >> 32);
  unsigned k0 = (unsigned)seed, k1 = (unsigned)((unsigned long long)seed >> 32);
  FXF_UNROLL
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = (unsigned long long)x0 * 0xd2511f53u, b = (unsigned long long)x2 * 0xcd9e8d57u;
    x0 = (unsigned)(b >> 32) ^ x1 ^ k0;
    x1 = (unsigned)b;
    x2 = (unsigned)(a >> 32) ^ x3 ^ k1;
    x3 = (unsigned)a;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  kept.words[0] = x0;
  kept.words[1] = x1;
  kept.words[2] = x2;
  kept.words[3] = x3;
}
// 32 bits for an element of a node of a graph. All calls with one `kept` have the same seed and node.
FXF_INLINE long long fxf_random_bits(fxf_random& kept, long long seed, long long node, long long element) {
  const unsigned long long group = (unsigned long long)element >> 2;
  if (group != kept.group) {
    kept.group = group;
    fxf_draw(kept, seed, node);
  }
  const unsigned even = (element & 2) != 0 ? kept.words[2] : kept.words[0], odd = (element & 2) != 0 ? kept.words[3] : kept.words[1];
  return (element & 1) != 0 ? odd : even;
}
