#include "executor/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "executor/placement.h"

namespace fxfuser::executor {
namespace {

constexpr std::size_t kMostValues = 512;  // of a block: placing them is quadratic

/// Memory that a step of the plan allocates: a tensor's, or a workspace.
struct Temporary {
  Lifetime life;
  SlotId root = ValueMemory::kUnknown;  // of a workspace: none
  bool movable = false;                 // may lie in a block
};

std::int64_t rounded(std::int64_t bytes, bool on_cuda) {
  const std::int64_t step = on_cuda ? 512 : 64;  // as the allocators align
  return (bytes + step - 1) / step * step;
}

class MemoryPlanner {
 public:
  MemoryPlanner(Plan& plan, const ValueMemory& memory, const std::vector<bool>& keep) : plan_(plan), memory_(memory), keep_(keep) {}

  void run() {
    find_temporaries();
    std::map<int, std::vector<std::size_t>> movable;  // by device
    for (std::size_t i = 0; i < temporaries_.size(); ++i) {
      if (temporaries_[i].movable) movable[std::get<LaunchStep>(plan_.steps[temporaries_[i].life.first].what).device].push_back(i);
    }
    usage_ = usage_of_all();
    peak_ = usage_.empty() ? 0 : *std::max_element(usage_.begin(), usage_.end());
    for (const auto& [device, members] : movable) {
      for (std::size_t at = 0; at < members.size(); at += kMostValues) {
        const auto begin = members.begin() + static_cast<std::ptrdiff_t>(at);
        const std::vector<std::size_t> window(begin, begin + static_cast<std::ptrdiff_t>(std::min(kMostValues, members.size() - at)));
        if (add_block(window)) continue;
        for (const auto& part : cut(window)) add_block(part);
      }
    }
  }

 private:
  /// In the order of the steps that allocate them.
  void find_temporaries() {
    std::map<SlotId, std::size_t> of_root;
    const auto last = static_cast<std::uint32_t>(plan_.steps.size()) - 1;
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      const auto* launch = std::get_if<LaunchStep>(&step.what);
      const bool on_cuda = launch != nullptr && launch->device >= 0;
      const auto touch = [&](SlotId slot) {
        const SlotId root = memory_.of(slot).root;
        if (root == ValueMemory::kUnknown) return;
        const auto [at, fresh] = of_root.emplace(root, temporaries_.size());
        const ValueMemory::Value value = memory_.of(root);
        if (fresh) temporaries_.push_back({{s, s, rounded(value.bytes, on_cuda)}, root, launch != nullptr && !value.lent && value.bytes > 0});
        Temporary& temporary = temporaries_[at->second];
        temporary.life.last = std::max(temporary.life.last, s);
        if (slot >= keep_.size() || !keep_[slot]) return;
        temporary.life.last = last;
        temporary.movable = false;
      };
      for_each_write(step, touch);
      for_each_read(step, touch);
      if (launch != nullptr && launch->workspace_bytes > 0) temporaries_.push_back({{s, s, rounded(launch->workspace_bytes, on_cuda)}, ValueMemory::kUnknown, true});
    }
  }

  /// Bytes that live at each step, each temporary by itself.
  std::vector<std::int64_t> usage_of_all() const {
    std::vector<std::int64_t> change(plan_.steps.size() + 1, 0);
    for (const Temporary& temporary : temporaries_) {
      change[temporary.life.first] += temporary.life.bytes;
      change[temporary.life.last + 1] -= temporary.life.bytes;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    return change;
  }

  /// Parts between which no member lives.
  std::vector<std::vector<std::size_t>> cut(const std::vector<std::size_t>& members) const {
    std::vector<std::vector<std::size_t>> parts;
    std::uint32_t end = 0;
    for (const std::size_t member : members) {  // ordered by their first steps
      const Lifetime& life = temporaries_[member].life;
      if (parts.empty() || life.first > end) parts.emplace_back();
      parts.back().push_back(member);
      end = std::max(end, life.last);
    }
    return parts;
  }

  /// False when the block would not pay, or raise the peak.
  bool add_block(const std::vector<std::size_t>& members) {
    if (members.size() < 2) return false;
    std::vector<Lifetime> lives;
    Lifetime whole = temporaries_[members[0]].life;
    for (const std::size_t member : members) {
      lives.push_back(temporaries_[member].life);
      whole.last = std::max(whole.last, lives.back().last);
    }
    const Placement placement = place(lives);
    std::vector<std::int64_t> change(whole.last - whole.first + 2, 0);
    for (const Lifetime& life : lives) {
      change[life.first - whole.first] -= life.bytes;
      change[life.last + 1 - whole.first] += life.bytes;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    for (std::uint32_t s = whole.first; s <= whole.last; ++s) {
      if (usage_[s] + change[s - whole.first] + placement.bytes > peak_) return false;
    }
    for (std::uint32_t s = whole.first; s <= whole.last; ++s) usage_[s] += change[s - whole.first] + placement.bytes;
    const auto block = static_cast<SlotId>(plan_.slot_count++);
    for (std::size_t i = 0; i < members.size(); ++i) move_in(temporaries_[members[i]], {block, placement.offsets[i], placement.bytes});
    plan_.steps[whole.last].free_after.push_back(block);
    return true;
  }

  void move_in(const Temporary& temporary, const Place& place) {
    auto& launch = std::get<LaunchStep>(plan_.steps[temporary.life.first].what);
    if (temporary.root == ValueMemory::kUnknown) {
      launch.workspace_place = place;
      return;
    }
    for (TensorOutput& output : launch.outputs) {
      if (output.slot == temporary.root) output.place = place;
    }
  }

  Plan& plan_;
  const ValueMemory& memory_;
  const std::vector<bool>& keep_;
  std::vector<Temporary> temporaries_;
  std::vector<std::int64_t> usage_;  // by step
  std::int64_t peak_ = 0;
};

}  // namespace

void plan_memory(Plan& plan, const ValueMemory& memory, const std::vector<bool>& keep) {
  if (!plan.steps.empty()) MemoryPlanner(plan, memory, keep).run();
}

}  // namespace fxfuser::executor
