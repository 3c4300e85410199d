#include "codegen/file_io.h"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace fxfuser::codegen {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

}  // namespace

std::string read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rbe"));
  std::string bytes;
  if (file == nullptr) return bytes;
  char piece[1 << 14];
  for (std::size_t count; (count = std::fread(piece, 1, sizeof piece, file.get())) > 0;) bytes.append(piece, count);
  return bytes;
}

bool write_file(const std::string& path, std::string_view bytes) {
  File file(std::fopen(path.c_str(), "wbe"));
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) return false;
  return std::fclose(file.release()) == 0;
}

std::vector<std::string> split_words(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace fxfuser::codegen
