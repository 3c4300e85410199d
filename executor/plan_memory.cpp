#include "executor/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>

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
        add_blocks(window);
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

  /// Bytes that live at each step, each temporary by itself, and what a call takes while it runs.
  std::vector<std::int64_t> usage_of_all() const {
    std::vector<std::int64_t> change(plan_.steps.size() + 1, 0);
    for (const Temporary& temporary : temporaries_) {
      change[temporary.life.first] += temporary.life.bytes;
      change[temporary.life.last + 1] -= temporary.life.bytes;
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      for_each_write(plan_.steps[s], [&](SlotId slot) { change[s] += memory_.of(slot).scratch; });
    }
    return change;
  }

  struct Block {
    Placement placement;
    std::uint32_t first = 0, last = 0;
    std::vector<std::int64_t> change;  // of the usage, by step from `first` to `last`
    bool fits = true;                  // nowhere above the peak
  };

  Block block_of(std::span<const std::size_t> members) const {
    std::vector<Lifetime> lives;
    for (const std::size_t member : members) lives.push_back(temporaries_[member].life);
    Block block{place(lives), lives[0].first, 0, {}, true};  // members are in the order of their first steps
    for (const Lifetime& life : lives) block.last = std::max(block.last, life.last);
    block.change.resize(block.last - block.first + 2, 0);
    block.change[0] = block.placement.bytes;
    for (const Lifetime& life : lives) {
      block.change[life.first - block.first] -= life.bytes;
      block.change[life.last + 1 - block.first] += life.bytes;
    }
    std::partial_sum(block.change.begin(), block.change.end(), block.change.begin());
    block.change.pop_back();
    for (std::size_t i = 0; i < block.change.size(); ++i) block.fits = block.fits && usage_[block.first + i] + block.change[i] <= peak_;
    return block;
  }

  /// How many of the first members may share a block; 1 where no two may.
  std::size_t most_that_fit(std::span<const std::size_t> members) const {
    std::size_t good = 1, bad = members.size() + 1;
    for (std::size_t count = 2; bad > members.size() && good < members.size(); count *= 2) {
      const std::size_t next = std::min(count, members.size());
      (block_of(members.first(next)).fits ? good : bad) = next;
    }
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (block_of(members.first(middle)).fits ? good : bad) = middle;
    }
    return good;
  }

  /// Blocks for members that follow each other, each as long as it can be.
  void add_blocks(std::span<const std::size_t> members) {
    while (members.size() > 1) {
      const std::size_t count = most_that_fit(members);
      if (count > 1) add_block(members.first(count));
      members = members.subspan(count);
    }
  }

  void add_block(std::span<const std::size_t> members) {
    const Block block = block_of(members);
    for (std::size_t i = 0; i < block.change.size(); ++i) usage_[block.first + i] += block.change[i];
    const auto slot = static_cast<SlotId>(plan_.slot_count++);
    for (std::size_t i = 0; i < members.size(); ++i) move_in(temporaries_[members[i]], {slot, block.placement.offsets[i], block.placement.bytes});
    plan_.steps[block.last].free_after.push_back(slot);
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
