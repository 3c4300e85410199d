#pragma once
// Compiled kernels on disk: one file an entry, named by a hash of its key and holding the whole key, written atomically. Only a
// folder that is safe to load code from is used: the user's own, closed to others, no link, under folders that others can't
// write.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fxfuser::executor {

class DiskCache {
 public:
  /// A cache that is switched off.
  DiskCache() = default;
  /// `folder` empty: the XDG cache folder. An unsafe or unusable folder turns the cache off; nothing that exists is changed.
  explicit DiskCache(const std::string& folder);

  /// A folder of another's making that is read only: what exists, is no link, belongs to the user or root and can't be written
  /// by others. Otherwise the result is off, with a problem.
  static DiskCache read_only(const std::string& folder);

  bool on() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  /// Why the folder is not used, and what to do; empty when it is, or when the cache is switched off.
  const std::string& problem() const { return problem_; }
  std::optional<std::string> load(std::string_view key) const;
  void store(std::string_view key, std::string_view bytes) const;
  /// The keys of all entries that are whole, by name of their files.
  std::vector<std::string> keys() const;
  void clear() const;
  /// Runs `work` while this process alone holds the entry's lock file, so that processes that start together compile once.
  void locked(std::string_view key, const std::function<void()>& work) const;

 private:
  void trim() const;

  std::string folder_;
  std::string problem_;
};

}  // namespace fxfuser::executor
