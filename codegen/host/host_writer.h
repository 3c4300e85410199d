#pragma once
// What the host emitters share: expressions as C statements at a point of the space, loads and stores, decomposition of a
// linear index into axes. An emitter says where each value lives (a local, or an element of a lane array).

#include <functional>
#include <string>
#include <vector>

#include "codegen/expr_writer.h"
#include "codegen/fusion_passes.h"
#include "codegen/kernel_source.h"
#include "codegen/param_block.h"
#include "codegen/source_writer.h"

namespace fxfuser::codegen {

class HostWriter {
 public:
  HostWriter(const Fusion& fusion, const Schedule& schedule, bool workspace);

  SourceWriter body;
  ParamBlock params;
  const Fusion& fusion;
  const Schedule& schedule;
  Passes passes;
  std::function<std::string(std::uint32_t)> value_name;   // where expression id's value is read from
  ParamBlock::IndexName index_name;                       // name of an axis' index

  /// `const T v7 = ...;` for each id in order (Reduce excluded).
  void statements(const std::vector<std::uint32_t>& ids);
  /// The right-hand side of one expression.
  std::string right_side(std::uint32_t id);
  void store(std::size_t output);
  /// Declares i<axis> for `axes` (outermost first) from a linear index expression.
  void decompose(const std::string& linear, const std::vector<std::size_t>& axes);
  /// Product of the axes' sizes as text.
  std::string product(const std::vector<std::size_t>& axes);

  std::vector<std::size_t> kept_axes() const;
  std::vector<std::size_t> reduced_axes() const;

  /// The finished text: parameter struct and, for each entry, its head, the declarations and its body.
  static std::string head(const std::string& entry);

 private:
  std::string load(const Expr& expr, const std::string& role);
};

/// One accumulator in C: its type, init, the fold statement and the finished row value.
struct AccumulatorText {
  std::string type;   // double for folds that add or multiply floats, else the register type of the compute dtype
  std::string init;
  bool arg = false;
};
AccumulatorText accumulator_text(const Fusion& fusion, const Accumulator& state);
/// Statement that folds (value, index) into (acc, acc_index).
std::string fold_statement(const Fusion& fusion, const Accumulator& state, const std::string& acc, const std::string& acc_index,
                           const std::string& value, const std::string& value_index);

/// Emitters, one a kind. Each returns the text (without prelude) with kEntryName in it and fills launches and workspace.
void emit_host_pointwise(HostWriter& writer, KernelSource& source);
void emit_host_rows(HostWriter& writer, KernelSource& source);
void emit_host_columns(HostWriter& writer, KernelSource& source);
void emit_host_tiles(HostWriter& writer, KernelSource& source);
/// The second launch of a split reduction: partials -> row values -> outputs. Appends to source.text.
void emit_host_finish(HostWriter& writer, KernelSource& source);
/// The second launch of a row + column kernel: partial columns -> column values -> outputs. Appends to source.text.
void emit_host_column_finish(HostWriter& writer, KernelSource& source);
/// Closes an entry: prepends declarations to `writer.body` and appends it to source.text under `suffix`.
void close_entry(HostWriter& writer, KernelSource& source, const std::string& suffix, std::int64_t work_items, std::int64_t grain);

}  // namespace fxfuser::codegen
