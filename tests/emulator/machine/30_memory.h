// Shared memory, rounds of posts between the blocks of a cluster, and asynchronous fetches: who may read what when.

namespace fxf_emu {

// One of each block that runs. An access is ordered after another thread's when this thread has awaited a barrier at which that one
// arrived after its access.
template <class T, int N>
struct Shared {
  struct Access {
    int thread = -1;
    unsigned arrived = 0;
    bool is_before_me() const { return thread == machine.current || machine.fibers[machine.current].awaited > arrived; }
    void set() { thread = machine.current, arrived = machine.fibers[machine.current].arrived; }
  };
  struct Cell {
    T value;
    unsigned serial = 0;
    Access write, reads[2];  // the last two threads to read: of all readers, one that is not the writer has come as far as any
  };
  Cell cells[kPeers][N];

  Cell& cell(int block, long long at) {
    if (at < 0 || at >= N) fail("shared memory out of bounds", at, N);
    Cell& found = cells[block][at];
    if (found.serial != machine.serial) {
      found.serial = machine.serial;
      found.write = found.reads[0] = found.reads[1] = Access();
    }
    return found;
  }
  T take(long long at) {
    Cell& found = cell(rank(), at);
    if (found.write.thread < 0) fail("shared memory is read before it is written", at);
    if (!found.write.is_before_me()) fail("race: written and read between two barriers", at, found.write.thread);
    Access* mine = &found.reads[found.reads[1].thread == machine.current || (found.reads[0].thread != machine.current && found.reads[1].arrived <= found.reads[0].arrived)];
    if (found.reads[0].thread < 0) mine = &found.reads[0];
    mine->set();
    return found.value;
  }
  void place(long long at, const T& value, int block) {
    Cell& found = cell(block, at);
    if (found.write.thread >= 0 && !found.write.is_before_me()) fail("race: written by two threads between two barriers", at, found.write.thread);
    for (const Access& read : found.reads) {
      if (read.thread >= 0 && !read.is_before_me()) fail("race: read and written between two barriers", at, read.thread);
    }
    found.value = value;
    found.write.set();
  }
};

inline void meet() {
  arrive();
  await();
}

// Rounds of posts between the blocks of a cluster. A thread posts a round (or has a warp's lanes do it) before it awaits it, and awaits
// it before it posts the next: so who has awaited a round comes after all that any thread did before it posted that round. It is modelled as
// a barrier at which a thread arrives when it awaits.
struct Exchange {
  struct Bank {
    unsigned serial = 0;
    int rounds = 0;
    long long expected = 0, posted = 0;
  };
  Bank banks[kPeers][2];

  Bank& bank(int block, int which) {
    Bank& found = banks[block][which];
    if (found.serial != machine.serial) found = Bank{machine.serial, 0, 0, 0};
    return found;
  }
  void open(int peers) {
    if (peers != static_cast<int>(machine.peers)) fail("a cluster of another size", peers, machine.peers);
    if (peers > 1) meet();
  }
  void expect(int which, long long bytes) { bank(rank(), which).expected += bytes; }
  void post(int block, int which, long long bytes) { bank(block, which).posted += bytes; }
  void await(int which, int parity) {
    meet();
    Bank& mine = bank(rank(), which);
    if (mine.posted != mine.expected) fail("a round of posts is not what the block expects", mine.posted, mine.expected);
    if (machine.current % static_cast<int>(machine.threads) == 0 && mine.rounds++ % 2 != parity) fail("a round is awaited by the wrong parity", parity);
  }
};

// Fetches land when they are waited for, not before: until then their place holds bytes that are no numbers.
inline void fetch(char* to, const char* from, std::size_t bytes) {
  std::memset(to, 0xff, bytes);
  machine.fetches[machine.current].push_back({to, from, bytes, machine.commits[machine.current]});
}
inline void await_fetches(int under_way) {
  auto& fetches = machine.fetches[machine.current];
  std::vector<Machine::Fetch> rest;
  for (const Machine::Fetch& fetch : fetches) {
    if (fetch.commit < machine.commits[machine.current] - under_way) std::memcpy(fetch.to, fetch.from, fetch.bytes);
    else rest.push_back(fetch);
  }
  fetches = std::move(rest);
}
inline void check_fetched(const char* from, std::size_t bytes) {
  for (const auto& fetches : machine.fetches) {
    for (const Machine::Fetch& fetch : fetches) {
      if (fetch.to < from + bytes && from < fetch.to + fetch.bytes) fail("a pack is read before its fetch was waited for");
    }
  }
}

}  // namespace fxf_emu
