#pragma once
// Complete definitions by their records. Upstream's cache is a trie, one node a record, walked while the definition is written;
// here the whole list is one key, hashed and then compared in full: a definition is looked up once, when it is complete.

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/frontend/record.h"

namespace fxfuser {
class Program;
}

namespace fxfuser::frontend {

/// One complete definition, shared by all that say the same; what it runs as is made when it is first needed.
class Fusion {
 public:
  Fusion(std::uint64_t id, std::vector<Record> records);

  std::uint64_t id() const { return id_; }
  const std::vector<Record>& records() const { return records_; }
  /// Indices of the records that are inputs, in order.
  const std::vector<std::size_t>& inputs() const { return inputs_; }
  std::size_t output_count() const { return outputs_; }

  /// The program for a device that factories make tensors on; `make` is called once a device, and again after drop_programs.
  std::shared_ptr<Program> program(const ir::Device& device, const std::function<std::shared_ptr<Program>()>& make);
  void drop_programs();

 private:
  const std::uint64_t id_;
  const std::vector<Record> records_;
  std::vector<std::size_t> inputs_;
  std::size_t outputs_ = 0;
  std::mutex mutex_;
  std::map<std::pair<int, int>, std::shared_ptr<Program>> programs_;
};

struct CacheStats {
  std::uint64_t hits = 0, misses = 0, evictions = 0;
  std::size_t size = 0, capacity = 0;
};

/// Bounded; the fusion that was used longest ago goes first. A fusion that goes lives on while somebody holds it.
class FusionCache {
 public:
  static constexpr std::size_t kCapacity = 8192;
  /// Definitions are small; what they run as is kept for this many of the latest, and for those that somebody holds.
  static constexpr std::size_t kWarm = 512;

  explicit FusionCache(std::size_t capacity = kCapacity, std::size_t most_warm = kWarm) : capacity_(capacity), most_warm_(most_warm) {}

  std::shared_ptr<Fusion> intern(const std::vector<Record>& records);
  /// Throws Error(Runtime) "Invalid fusion id!" for one that was never given or is gone.
  std::shared_ptr<Fusion> find(std::uint64_t id);
  CacheStats stats() const;
  /// At least 1; what is over it goes at once.
  void set_capacity(std::size_t capacity);
  /// Forgets all fusions; ids are not given again.
  void clear();
  /// Keeps the definitions, drops what they run as.
  void drop_programs();

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<Fusion> fusion;
    bool warm = false;
  };
  using Entries = std::list<Entry>;
  /// Moves an entry to the front; the last of the warm ones may go cold.
  void use(Entries::iterator entry);
  void shrink();

  mutable std::mutex mutex_;
  std::size_t capacity_;
  const std::size_t most_warm_;
  std::size_t warm_ = 0;  // entries in front of cold_
  std::uint64_t next_id_ = 0;
  CacheStats stats_;
  Entries entries_;  // most recent first: the warm ones, then the cold ones
  Entries::iterator cold_ = entries_.end();  // the first cold one
  std::unordered_map<std::string_view, Entries::iterator> by_key_;  // views of the entries' own keys
  std::unordered_map<std::uint64_t, Entries::iterator> by_id_;
};

}  // namespace fxfuser::frontend
