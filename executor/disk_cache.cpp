#include "executor/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "partitioner/ir/error.h"
#include "partitioner/ir/hash.h"

namespace fxfuser::executor {
namespace {

namespace fs = std::filesystem;
constexpr std::uintmax_t kMaxBytes = 512u << 20;
constexpr std::string_view kMagic = "fxfuser-kernel-1\n";

std::string default_folder() {
  if (const char* base = std::getenv("XDG_CACHE_HOME"); base != nullptr && base[0] == '/') return std::string(base) + "/fxfuser";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') return std::string(home) + "/.cache/fxfuser";
  return {};
}

/// Why code must not be loaded from under this folder: each component belongs to the user or root and can't be written by others
/// (a sticky one like /tmp may). Empty when it is safe.
std::string unsafe_component(const fs::path& path) {
  fs::path so_far;
  for (const fs::path& part : path) {
    so_far /= part;
    struct stat info{};
    if (lstat(so_far.c_str(), &info) != 0) return so_far.string() + " can't be read";
    if (info.st_uid != geteuid() && info.st_uid != 0) return so_far.string() + " belongs to another user";
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) return so_far.string() + " can be written by other users";
  }
  return {};
}

/// Makes the folders that are missing, closed to others.
bool make_folders(const fs::path& path) {
  fs::path so_far;
  for (const fs::path& part : path) {
    so_far /= part;
    struct stat info{};
    if (lstat(so_far.c_str(), &info) == 0) continue;
    if (mkdir(so_far.c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  return true;
}

/// What is wrong with the folder itself; empty when it is the user's own (to read from, root's as well), no link, and closed to
/// writes of others.
std::string folder_problem(const std::string& path, bool writes = true) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return fmt::format("{} can't be read: {}", path, std::strerror(errno));
  if (S_ISLNK(info.st_mode)) return path + " is a link";
  if (!S_ISDIR(info.st_mode)) return path + " is not a folder";
  if (info.st_uid != geteuid() && (writes || info.st_uid != 0)) return path + " belongs to another user";
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return fmt::format("{} can be written by other users (chmod 700 {} closes it)", path, path);
  if (access(path.c_str(), R_OK | X_OK | (writes ? W_OK : 0)) != 0) return path + (writes ? " can't be read and written" : " can't be read");
  return {};
}

/// The folder resolved and checked, or empty with a reason.
std::string usable(std::string wanted, std::string& why) {
  while (wanted.size() > 1 && wanted.back() == '/') wanted.pop_back();  // the name itself, not what a link leads to
  std::error_code error;
  if (!make_folders(fs::absolute(wanted, error))) {
    why = fmt::format("{} can't be made: {}", wanted, std::strerror(errno));
    return {};
  }
  why = folder_problem(wanted);
  if (!why.empty()) return {};
  const fs::path real = fs::canonical(wanted, error);
  if (error) {
    why = wanted + " can't be resolved";
    return {};
  }
  why = unsafe_component(real.parent_path());
  return why.empty() ? real.string() : std::string();
}

/// The key and the payload of an entry's text; nullopt when it is cut short or damaged.
/// Layout: magic, key size, key, payload hash, payload.
std::optional<std::pair<std::string_view, std::string_view>> parts_of(std::string_view text) {
  if (!text.starts_with(kMagic)) return std::nullopt;
  text.remove_prefix(kMagic.size());
  std::uint64_t size = 0;
  ir::Hash128 hash;
  if (text.size() < sizeof size + sizeof hash) return std::nullopt;
  std::memcpy(&size, text.data(), sizeof size);
  text.remove_prefix(sizeof size);
  if (size > text.size() - sizeof hash) return std::nullopt;
  const std::string_view key = text.substr(0, size);
  text.remove_prefix(size);
  std::memcpy(&hash, text.data(), sizeof hash);
  text.remove_prefix(sizeof hash);
  if (!(ir::hash_bytes(text) == hash)) return std::nullopt;
  return std::pair(key, text);
}

std::string file_name(std::string_view key) { return ir::to_hex(ir::hash_bytes(key)); }

std::optional<std::string> read_own_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat info{};
  std::optional<std::string> out;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && (info.st_uid == geteuid() || info.st_uid == 0) && (info.st_mode & 022) == 0) {
    std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t at = 0;
    while (at < bytes.size()) {
      const ssize_t count = read(file, bytes.data() + at, bytes.size() - at);
      if (count <= 0) break;
      at += static_cast<std::size_t>(count);
    }
    if (at == bytes.size()) out = std::move(bytes);
  }
  close(file);
  return out;
}

}  // namespace

DiskCache::DiskCache(const std::string& folder) {
  const std::string wanted = folder.empty() ? default_folder() : folder;
  std::string why = "there is no home folder";
  if (!wanted.empty()) folder_ = usable(wanted, why);
  if (!on()) problem_ = fmt::format("the kernel cache on disk is off: {}; set FXFUSER_CACHE_DIR to a folder of your own that others can't write", why);
}

DiskCache DiskCache::read_only(const std::string& folder) {
  DiskCache out;
  std::string wanted = folder;
  while (wanted.size() > 1 && wanted.back() == '/') wanted.pop_back();
  std::string why = folder_problem(wanted, false);
  std::error_code error;
  const fs::path real = why.empty() ? fs::canonical(wanted, error) : fs::path();
  if (error) why = wanted + " can't be resolved";
  if (why.empty()) why = unsafe_component(real.parent_path());
  if (why.empty()) out.folder_ = real.string();
  else out.problem_ = "no kernels are loaded from there: " + why;
  return out;
}

std::optional<std::string> DiskCache::load(std::string_view key) const {
  if (!on()) return std::nullopt;
  const auto text = read_own_file(folder_ + "/" + file_name(key) + ".bin");
  const auto parts = text ? parts_of(*text) : std::nullopt;
  return parts && parts->first == key ? std::optional<std::string>(parts->second) : std::nullopt;
}

std::vector<std::string> DiskCache::keys() const {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() == ".bin") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> out;
  for (const fs::path& file : files) {
    const auto text = read_own_file(file.string());
    if (const auto parts = text ? parts_of(*text) : std::nullopt) out.emplace_back(parts->first);
  }
  return out;
}

void DiskCache::store(std::string_view key, std::string_view bytes) const {
  if (!on()) return;
  const std::string name = folder_ + "/" + file_name(key) + ".bin";
  std::string scratch = name + ".XXXXXX";
  const int file = mkstemp(scratch.data());
  if (file < 0) return;
  const std::uint64_t size = key.size();
  const ir::Hash128 hash = ir::hash_bytes(bytes);
  std::string text(kMagic);
  text.append(reinterpret_cast<const char*>(&size), sizeof size).append(key).append(reinterpret_cast<const char*>(&hash), sizeof hash).append(bytes);
  const bool whole = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  if (!whole || rename(scratch.c_str(), name.c_str()) != 0) unlink(scratch.c_str());
  trim();
}

void DiskCache::trim() const {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::uintmax_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != ".bin") continue;
    total += entry.file_size(error);
    files.emplace_back(entry.last_write_time(error), entry.path());
  }
  if (total <= kMaxBytes) return;
  std::sort(files.begin(), files.end());
  for (const auto& [time, path] : files) {
    const std::uintmax_t size = fs::file_size(path, error);
    if (fs::remove(path, error)) total -= size;
    if (total <= kMaxBytes * 3 / 4) return;
  }
}

void DiskCache::clear() const {
  if (!on()) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const auto ending = entry.path().extension();
    if (ending == ".bin" || ending == ".lock") fs::remove(entry.path(), error);
  }
}

void DiskCache::locked(std::string_view key, const std::function<void()>& work) const {
  if (!on()) return work();
  // A few lock files for all entries: two kernels that share one only wait for each other.
  const std::string path = folder_ + "/" + file_name(key).substr(0, 2) + ".lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return work();
  flock(file, LOCK_EX);
  try {
    work();
  } catch (...) {
    close(file);
    throw;
  }
  close(file);
}

}  // namespace fxfuser::executor
