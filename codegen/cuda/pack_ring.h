#pragma once
// Packs of rows to come, on their way to shared memory while the rows before them are worked on. Each thread fetches its own packs
// into slots of its own, so no barrier belongs to the data. Turn `t` of a kernel has its rows in slot t % stages. Where there is one slot,
// the packs of a block lie in it one after the other, and each thread refills the place of a pack when it has worked on it for the last
// time.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {

class PackRing {
 public:
  explicit PackRing(CudaWriter& writer) : w_(writer) {}

  bool any() const { return w_.schedule.stages > 0 && !ids_.empty(); }
  /// Which loads take this way, and by how many turns they go ahead; at least one.
  void set(std::vector<std::uint32_t> ids, int ahead);
  bool has(std::uint32_t id) const;
  std::int64_t shared_bytes() const;
  /// `turn` is called with the text of a turn, and emits the guard and the indices of its row around the fetches that it is given.
  using Turn = std::function<void(const std::string& which, const std::function<void()>& fetches)>;
  /// The slots, and the fetches of the first turns.
  void begin(const Turn& turn);
  /// At the head of turn `turn`: fetches one to come and waits for this one.
  void advance(const Turn& turn);
  /// Fetches into the place of pack `k`, where the indices are those of the row that it belongs to.
  void refill();
  /// Text that has a thread's pack `k` of a slot.
  std::string pack(std::uint32_t id, const std::string& slot) const;

 private:
  void fetch(const Turn& turn, const std::string& which);
  std::int64_t slot_bytes(std::uint32_t id) const;
  std::string place(std::uint32_t id, const std::string& slot) const;

  CudaWriter& w_;
  std::vector<std::uint32_t> ids_;
  int ahead_ = 1;
};

}  // namespace fxfuser::codegen
