#pragma once
// The plans of one program by what they assumed: bounded, the least recently used goes first.

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "executor/key_difference.h"
#include "executor/options.h"
#include "executor/plan.h"
#include "executor/signature.h"

namespace fxfuser::executor {

class PlanCache {
 public:
  /// The plan of this signature under these options; null when there is none, or when it lacks kernels that version `kernels` of
  /// the kernel cache may hold.
  std::shared_ptr<const Plan> find(const SignatureWords& signature, const Options& options, std::uint64_t kernels);
  /// The key of the plan that was used or made last.
  std::optional<PlanKey> latest();
  /// Replaces the plan of the same signature and options.
  void remember(const SignatureWords& signature, const Options& options, std::shared_ptr<const Plan> plan);

 private:
  struct Entry {
    std::size_t hash = 0;
    std::vector<std::int64_t> signature;
    Options options;
    std::shared_ptr<const Plan> plan;
    std::size_t bytes = 0;
  };
  using Position = std::list<Entry>::iterator;
  Position position_of(std::size_t hash, const SignatureWords& signature, const Options& options);

  void drop_oldest();

  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  // most recent first
  std::unordered_multimap<std::size_t, Position> by_hash_;
};

}  // namespace fxfuser::executor
