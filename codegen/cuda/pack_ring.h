#pragma once
// Packs of rows to come, on their way to shared memory while the rows before them are worked on. Each thread fetches its own packs
// into slots of its own, so no barrier belongs to the data. The kernel counts its rounds in `turn`.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {

class PackRing {
 public:
  explicit PackRing(CudaWriter& writer) : w_(writer) {}

  bool any() const { return w_.schedule.stages > 1 && !ids_.empty(); }
  /// Which loads take this way.
  void set(std::vector<std::uint32_t> ids) { ids_ = std::move(ids); }
  const std::vector<std::uint32_t>& ids() const { return ids_; }
  std::int64_t shared_bytes() const;
  /// The slots, and the fetches of a block's first rounds. `round` is called with the text of a round and emits the guard and the
  /// indices of its row around the fetches that it is given.
  using Round = std::function<void(const std::string& round, const std::function<void()>& fetches)>;
  void begin(const Round& round);
  /// At the head of a round: fetches a round to come and waits for this one, whose packs then go to registers.
  void advance(const Round& round);
  void take(const std::function<void()>& begin_packs, const std::function<void()>& end_packs);

 private:
  void fetch(const Round& round, const std::string& which, const std::string& slot);

  CudaWriter& w_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace fxfuser::codegen
