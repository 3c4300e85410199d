#include "executor/frontend/fusion_cache.h"

#include "partitioner/ir/error.h"

namespace fxfuser::frontend {

Fusion::Fusion(std::uint64_t id, std::vector<Record> records) : id_(id), records_(std::move(records)) {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (std::holds_alternative<TensorRecord>(records_[i]) || std::holds_alternative<ScalarRecord>(records_[i])) inputs_.push_back(i);
    if (std::holds_alternative<OutputRecord>(records_[i])) ++outputs_;
  }
}

std::shared_ptr<Program> Fusion::program(const ir::Device& device, const std::function<std::shared_ptr<Program>()>& make) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Program>& slot = programs_[{static_cast<int>(device.kind), device.index}];
  if (slot == nullptr) slot = make();
  return slot;
}

void Fusion::drop_programs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  programs_.clear();
}

std::shared_ptr<Fusion> FusionCache::intern(const std::vector<Record>& records) {
  std::string key = key_of(records);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    ++stats_.hits;
    use(found->second);
    return found->second->fusion;
  }
  ++stats_.misses;
  entries_.push_front({std::move(key), std::make_shared<Fusion>(next_id_++, records)});
  by_key_[entries_.front().key] = entries_.begin();
  by_id_[entries_.front().fusion->id()] = entries_.begin();
  std::shared_ptr<Fusion> fusion = entries_.front().fusion;
  use(entries_.begin());
  shrink();
  return fusion;
}

std::shared_ptr<Fusion> FusionCache::find(std::uint64_t id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_id_.find(id);
  FXF_CHECK(found != by_id_.end(), Runtime, "Invalid fusion id! There is no fusion {}", id);
  use(found->second);
  return found->second->fusion;
}

void FusionCache::use(Entries::iterator entry) {
  if (!entry->warm) {
    if (entry == cold_) ++cold_;
    entry->warm = true;
    ++warm_;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  while (warm_ > most_warm_) {
    --cold_;
    --warm_;
    cold_->warm = false;
    if (cold_->fusion.use_count() == 1) cold_->fusion->drop_programs();
  }
}

CacheStats FusionCache::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  CacheStats out = stats_;
  out.size = entries_.size();
  out.capacity = capacity_;
  return out;
}

void FusionCache::set_capacity(std::size_t capacity) {
  FXF_CHECK(capacity > 0, Value, "a cache of fusions holds at least one");
  const std::lock_guard<std::mutex> lock(mutex_);
  capacity_ = capacity;
  shrink();
}

void FusionCache::shrink() {
  while (entries_.size() > capacity_) {
    by_key_.erase(entries_.back().key);
    by_id_.erase(entries_.back().fusion->id());
    if (entries_.back().warm) --warm_;
    else if (&entries_.back() == &*cold_) cold_ = entries_.end();
    entries_.pop_back();
    ++stats_.evictions;
  }
}

void FusionCache::clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  by_key_.clear();
  by_id_.clear();
  entries_.clear();
  cold_ = entries_.end();
  warm_ = 0;
  stats_ = {};
}

void FusionCache::drop_programs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Entry& entry : entries_) entry.fusion->drop_programs();
}

}  // namespace fxfuser::frontend
