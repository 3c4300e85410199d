#pragma once
// Whole files and words, without iostreams: their locale facets break in a process that holds two copies of libstdc++ (a
// toolchain that links it statically), and nothing here needs formatting.

#include <string>
#include <string_view>
#include <vector>

namespace fxfuser::codegen {

/// The bytes of a file; empty when it can't be read.
std::string read_file(const std::string& path);
/// False when not all of it could be written.
bool write_file(const std::string& path, std::string_view bytes);
/// The non-empty pieces of `text` between any of `separators`.
std::vector<std::string> split_words(std::string_view text, std::string_view separators);

}  // namespace fxfuser::codegen
