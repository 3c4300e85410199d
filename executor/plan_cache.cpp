#include "executor/plan_cache.h"

#include <algorithm>

namespace fxfuser::executor {
namespace {

constexpr std::size_t kMaxPlans = 256;
constexpr std::size_t kMaxBytes = 16u << 20;  // of one program's plans, beside the latest

std::size_t hash_of(const SignatureWords& words) {
  std::uint64_t hash = 0x9e3779b97f4a7c15ull;
  for (std::int64_t word : words) hash = (hash ^ static_cast<std::uint64_t>(word)) * 0xd6e8feb86659fd93ull, hash ^= hash >> 32;
  return static_cast<std::size_t>(hash);
}

bool are_equal(const std::vector<std::int64_t>& a, const SignatureWords& b) { return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin()); }

bool is_current(const Plan& plan, std::uint64_t kernels) { return plan.missing_kernels == 0 || plan.cache_version == kernels; }

}  // namespace

PlanCache::Position PlanCache::position_of(std::size_t hash, const SignatureWords& signature, const Options& options) {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (are_equal(at->second->signature, signature) && at->second->options == options) return at->second;
  }
  return entries_.end();
}

std::shared_ptr<const Plan> PlanCache::find(const SignatureWords& signature, const Options& options, std::uint64_t kernels) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.empty()) return nullptr;
  Position found = entries_.begin();
  if (!are_equal(found->signature, signature) || !(found->options == options)) {
    found = position_of(hash_of(signature), signature, options);
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
  }
  return is_current(*found->plan, kernels) ? found->plan : nullptr;
}

std::optional<PlanKey> PlanCache::latest() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (entries_.empty()) return std::nullopt;
  return PlanKey{entries_.front().signature, entries_.front().options};
}

void PlanCache::remember(const SignatureWords& signature, const Options& options, std::shared_ptr<const Plan> plan) {
  const std::size_t hash = hash_of(signature);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const Position known = position_of(hash, signature, options); known != entries_.end()) {
    bytes_ += bytes_of(*plan) - known->bytes;
    known->bytes = bytes_of(*plan);
    known->plan = std::move(plan);
    entries_.splice(entries_.begin(), entries_, known);
  } else {
    const std::size_t bytes = bytes_of(*plan);
    bytes_ += bytes;
    entries_.push_front({hash, {signature.begin(), signature.end()}, options, std::move(plan), bytes});
    by_hash_.emplace(hash, entries_.begin());
  }
  while (entries_.size() > 1 && (entries_.size() > kMaxPlans || bytes_ > kMaxBytes)) drop_oldest();
}

void PlanCache::drop_oldest() {
  const Position oldest = std::prev(entries_.end());
  const auto [first, last] = by_hash_.equal_range(oldest->hash);
  by_hash_.erase(std::find_if(first, last, [&](const auto& item) { return item.second == oldest; }));
  bytes_ -= oldest->bytes;
  entries_.pop_back();
}

}  // namespace fxfuser::executor
