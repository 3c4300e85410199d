#pragma once
// What the first run of a plan tells of its values: in whose memory each lies, how much that is, and whether something that is
// called may keep it beyond the call.

#include <cstdint>
#include <vector>

#include "executor/step.h"

namespace fxfuser::executor {

class ValueMemory {
 public:
  static constexpr SlotId kUnknown = 0xffffffffu;  // an input's memory, or no tensor

  struct Value {
    SlotId root = kUnknown;   // the value whose memory this one lies in; itself where it has memory of its own
    std::int64_t bytes = 0;   // of that memory; set for roots
    bool lent = false;        // set for roots: read by what may keep what it is given, which ATen's own ops don't
  };

  /// `step` has run on `slots`, where what it read and wrote still is.
  void note(const Step& step, const Slots& slots);
  Value of(SlotId slot) const { return slot < values_.size() ? values_[slot] : Value{}; }

 private:
  Value& at(SlotId slot);
  SlotId root_of(SlotId slot) const { return of(slot).root; }
  /// A result of a call: the memory of one of `inputs`, of an earlier result, or its own.
  void note_result(SlotId slot, const std::vector<SlotId>& others, const Slots& slots);
  void note_call(const Step& step, bool keeps, const Slots& slots);

  std::vector<Value> values_;  // by slot
};

}  // namespace fxfuser::executor
