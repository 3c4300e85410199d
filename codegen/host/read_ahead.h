#pragma once
// Prefetches in loops over rows. The processor foresees neither the next page nor, while a later pass reads the row from its
// caches, the next row, nor the row that is written after the last fold: the memory would idle.

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/host/host_writer.h"

namespace fxfuser::codegen {

class ReadAhead {
 public:
  ReadAhead(HostWriter& writer, bool split, std::uint32_t pass);

  /// Statements for one step of `lanes` elements at index `j` of the innermost axis; `ids` is what the pass computes. Where rows
  /// are written whole, the first pass asks for what it reads next and the last that folds for what will be written; else the
  /// last that folds asks for what it reads next, or for the next row. Empty where rows are short.
  std::string text(const std::vector<std::uint32_t>& ids, const std::string& j, int lanes) const;

 private:
  std::vector<std::size_t> full_outputs() const;
  void read(std::uint32_t id, const std::string& j, int lanes, std::vector<std::string>& out) const;
  void write(std::size_t output, const std::string& j, int lanes, std::vector<std::string>& out) const;
  int next_axis(const Expr& load) const;

  HostWriter& w_;
  std::vector<std::size_t> reduced_, kept_;
  bool split_;
  std::uint32_t pass_;
};

}  // namespace fxfuser::codegen
