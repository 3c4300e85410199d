// A launch: its blocks (or clusters of blocks) one after another, their threads in three orders, and what is checked of them.

namespace fxf_emu {

enum class Order { Up, Down, Mixed };

inline bool release() {
  const int threads = static_cast<int>(machine.threads * machine.peers);
  bool any = false, waiting = false, all = true;
  for (int first = 0; first < threads; first += 32) {  // clusters are of whole warps
    int at_shuffle = 0, lanes = std::min(32, threads - first);
    for (int t = first; t < first + lanes; ++t) at_shuffle += machine.fibers[t].state == State::AtShuffle;
    if (at_shuffle == 0) continue;
    if (lanes < 32) fail("a shuffle in a warp of fewer than 32 threads", lanes);
    if (at_shuffle == 32) {
      for (int t = first; t < first + 32; ++t) machine.fibers[t].state = State::Ready;
      any = true;
    } else {
      all = false;
    }
  }
  if (any) return true;
  for (int t = 0; t < threads; ++t) {
    const State state = machine.fibers[t].state;
    waiting = waiting || state == State::AtBarrier;
    all = all && (state == State::AtBarrier || state == State::Done);
  }
  if (!all) fail("threads wait at a shuffle for lanes that are elsewhere or have left");
  if (!waiting) return false;
  for (int t = 0; t < threads; ++t) {
    Fiber& fiber = machine.fibers[t];
    if (fiber.state == State::Done) fail("a barrier that some threads never reach", t);
    fiber.state = State::Ready;
    ++fiber.awaited;
  }
  return true;
}

inline void run_block(unsigned block, const std::vector<int>& order) {
  machine.block = block;
  ++machine.serial;
  std::fill(machine.parity.begin(), machine.parity.end(), 0);
  for (auto& fetches : machine.fetches) fetches.clear();
  std::fill(machine.commits.begin(), machine.commits.end(), 0);
  for (unsigned t = 0; t < machine.threads * machine.peers; ++t) start(machine.fibers[t]);
  do {
    for (int thread : order) {
      if (machine.fibers[thread].state == State::Ready) resume(thread);
    }
  } while (release());
}

inline void check_writes() {
  auto& writes = machine.writes;
  std::sort(writes.begin(), writes.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  for (std::size_t i = 1; i < writes.size(); ++i) {
    if (writes[i - 1].at + writes[i - 1].size > writes[i].at) fail("an element is written twice in a launch", static_cast<long long>(writes[i].at), writes[i].size);
  }
  writes.clear();
}

inline void run(void (*body)(const void*), const void* params, const unsigned* grid, const unsigned* block, unsigned cluster) {
  machine.body = body;
  machine.params = params;
  machine.threads = block[0];
  machine.peers = cluster;
  const unsigned count = block[0] * cluster;
  if (cluster > kPeers || (cluster > 1 && block[0] % 32 != 0) || grid[0] % cluster != 0) fail("clusters of this kind are not modelled", cluster, block[0]);
  if (machine.fibers.size() < count) machine.fibers.resize(count);
  for (auto& words : machine.words) words.resize(count);
  machine.parity.resize(count);
  machine.fetches.resize(count);
  machine.commits.resize(count);
  unsigned long long random = 0x9e3779b97f4a7c15ull;
  const bool large = static_cast<unsigned long long>(grid[0]) * block[0] > (1u << 16);
  for (const Order kind : {Order::Up, Order::Down, Order::Mixed}) {
    if (large && kind != Order::Mixed) continue;
    std::vector<int> order(count);
    for (unsigned t = 0; t < count; ++t) order[t] = static_cast<int>(kind == Order::Down ? count - 1 - t : t);
    for (unsigned b = 0; b < grid[0]; b += cluster) {
      if (kind == Order::Mixed) {
        for (unsigned t = count; t > 1; --t) {
          random = random * 6364136223846793005ull + 1442695040888963407ull;
          std::swap(order[t - 1], order[(random >> 33) % t]);
        }
      }
      run_block(kind == Order::Up ? b : grid[0] - cluster - b, order);
    }
    check_writes();
  }
  for (Fiber& fiber : machine.fibers) {
    if (fiber.stack != nullptr) munmap(fiber.stack, kStack);
  }
  machine.fibers.clear();
}

inline int rank() { return machine.current / static_cast<int>(machine.threads); }
inline void arrive() {
  Fiber& fiber = machine.fibers[machine.current];
  if (fiber.arrived != fiber.awaited) fail("a thread arrives twice at a barrier", machine.current);
  ++fiber.arrived;
}
inline void await() {
  const Fiber& fiber = machine.fibers[machine.current];
  if (fiber.arrived != fiber.awaited + 1) fail("a thread waits at a barrier at which it has not arrived", machine.current);
  wait(State::AtBarrier);
}

inline void note_write(const void* at, std::size_t size) { machine.writes.push_back({reinterpret_cast<std::uintptr_t>(at), static_cast<unsigned>(size)}); }

}  // namespace fxf_emu
