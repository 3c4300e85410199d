#include "executor/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

/// Each component belongs to the user or root and can't be written by others (a sticky one like /tmp may).
std::string unsafe_component(const fs::path& path) {
  fs::path so_far;
  for (const fs::path& part : path) {
    so_far /= part;
    struct stat info{};
    if (lstat(so_far.c_str(), &info) != 0) return so_far.string() + " can't be read";
    if (info.st_uid != geteuid() && info.st_uid != 0) return so_far.string() + " belongs to somebody else";
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) return so_far.string() + " can be written by others";
  }
  return {};
}

/// The folder resolved and checked, or empty with a reason.
std::string usable(const std::string& wanted, std::string& why) {
  std::error_code error;
  fs::create_directories(wanted, error);
  if (error) {
    why = wanted + " can't be made: " + error.message();
    return {};
  }
  const fs::path real = fs::canonical(wanted, error);
  if (error) {
    why = wanted + " can't be resolved";
    return {};
  }
  why = unsafe_component(real.parent_path());
  struct stat info{};
  if (why.empty() && (lstat(real.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())) why = real.string() + " is not a folder of this user";
  if (why.empty() && (info.st_mode & 077) != 0 && chmod(real.c_str(), 0700) != 0) why = real.string() + " is open to others";
  if (why.empty() && access(real.c_str(), W_OK) != 0) why = real.string() + " can't be written";
  return why.empty() ? real.string() : std::string();
}

std::string file_name(std::string_view key) { return ir::to_hex(ir::hash_bytes(key)); }

std::optional<std::string> read_own_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat info{};
  std::optional<std::string> out;
  if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 022) == 0) {
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

DiskCache::DiskCache(const std::string& folder, std::string* why) {
  const std::string wanted = folder.empty() ? default_folder() : folder;
  std::string reason;
  if (wanted.empty()) reason = "no home folder";
  else folder_ = usable(wanted, reason);
  if (why != nullptr) *why = reason;
}

std::optional<std::string> DiskCache::load(std::string_view key) const {
  if (!on()) return std::nullopt;
  const auto text = read_own_file(folder_ + "/" + file_name(key) + ".bin");
  if (!text || !text->starts_with(kMagic)) return std::nullopt;
  // magic, key size, key, payload hash, payload
  std::string_view rest = std::string_view(*text).substr(kMagic.size());
  std::uint64_t size = 0;
  ir::Hash128 hash;
  if (rest.size() < sizeof size + sizeof hash) return std::nullopt;
  std::memcpy(&size, rest.data(), sizeof size);
  rest.remove_prefix(sizeof size);
  if (size != key.size() || rest.size() < size + sizeof hash || rest.substr(0, size) != key) return std::nullopt;
  rest.remove_prefix(size);
  std::memcpy(&hash, rest.data(), sizeof hash);
  rest.remove_prefix(sizeof hash);
  if (!(ir::hash_bytes(rest) == hash)) return std::nullopt;  // cut short or damaged
  return std::string(rest);
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
