#pragma once
// What the first run of a plan tells of its values: in whose memory each lies, how much that is, and whether something that is
// called may keep it beyond the call.

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/step.h"

namespace fxfuser::executor {

/// Is a step a call of an op of ATen's own, which runs no Python and keeps nothing of what it is given?
bool calls_aten(const Step& step);

/// Counts what the tensors of the calling thread take while it lives. Watches nothing while a profiler does: there is one place for
/// the reports of PyTorch's allocators.
class AllocationWatch {
 public:
  AllocationWatch();
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;
  bool watches() const { return state_ != nullptr; }
  /// The most bytes at one time beyond what there was at the start.
  std::int64_t most() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class ValueMemory {
 public:
  static constexpr SlotId kUnknown = 0xffffffffu;  // an input's memory, or no tensor

  struct Value {
    SlotId root = kUnknown;   // the value whose memory this one lies in; itself where it has memory of its own
    std::int64_t bytes = 0;   // of that memory; set for roots
    bool lent = false;        // set for roots: read by what may keep what it is given, which ATen's own ops don't
    std::int64_t scratch = 0; // what the call that made it took beside its results; set for its first result
  };

  /// `step` has run on `slots`, where what it read and wrote still is. `most`: bytes that it took at one time, results counted.
  void note(const Step& step, const Slots& slots, std::int64_t most);
  Value of(SlotId slot) const { return slot < values_.size() ? values_[slot] : Value{}; }

 private:
  Value& at(SlotId slot);
  SlotId root_of(SlotId slot) const { return of(slot).root; }
  /// A result of a call: the memory of one of `inputs`, of an earlier result, or its own.
  void note_result(SlotId slot, const std::vector<SlotId>& others, const Slots& slots);
  void note_call(const Step& step, bool keeps, std::int64_t most, const Slots& slots);

  std::vector<Value> values_;  // by slot
};

}  // namespace fxfuser::executor
