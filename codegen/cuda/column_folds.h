#pragma once
// Row + column kernels (layer-norm backward): a team of blocks walks over rows and folds, beside them, the columns that its threads
// hold. What the row emitter needs for that: the accumulators, the fold of one element, the partial columns at the end.

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {

class ColumnFolds {
 public:
  explicit ColumnFolds(CudaWriter& writer) : w_(writer) {}

  bool any() const { return !w_.passes.columns.empty(); }
  /// Values that the columns take in from a pass.
  void add_roots(std::uint32_t pass, std::vector<std::uint32_t>& roots) const;
  /// Before the rows: an accumulator for each of the thread's places of a row.
  void declare();
  /// At element `e` of vector `k`: folds it in.
  void fold(std::uint32_t pass, const std::vector<std::size_t>& reduced);
  /// After a turn, in which each of the thread's places took in one value at most.
  void settle(const std::string& turn);
  /// After the rows, at the same place: the thread's columns go to the workspace, [team and row of a block][column].
  void store();

 private:
  /// Is the column a sum that carries along what its additions lost?
  bool gathers(const Accumulator& state) const;

  CudaWriter& w_;
};

/// Bytes of the partial columns.
std::int64_t column_bytes(const CudaWriter& writer);
/// The second launch: folds the partial columns in a fixed order, and stores the outputs that are made from them.
void emit_cuda_column_finish(CudaWriter& writer, KernelSource& source);

}  // namespace fxfuser::codegen
