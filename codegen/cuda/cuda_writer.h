#pragma once
// What the CUDA emitters share: where a value lives at a point of a thread's own piece of the space, vector loads and stores,
// the decomposition of linear indices, and the folds across threads. An emitter owns loops and thread mapping.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "codegen/expr_writer.h"
#include "codegen/fusion_passes.h"
#include "codegen/kernel_source.h"
#include "codegen/param_block.h"
#include "codegen/source_writer.h"

namespace fxfuser::codegen {

class CudaWriter {
 public:
  CudaWriter(const Fusion& fusion, const Schedule& schedule, bool workspace);

  SourceWriter body;
  ParamBlock params;
  const Fusion& fusion;
  const Schedule& schedule;
  Passes passes;
  std::function<std::string(std::uint32_t)> value_name;
  ParamBlock::IndexName index_name;

  const std::string& index() const { return params.index_type(); }
  std::vector<std::size_t> kept_axes() const;
  std::vector<std::size_t> reduced_axes() const;
  std::string product(const std::vector<std::size_t>& axes);
  /// Declares i<axis> for `axes` (outermost first) from a linear index; the innermost starts at the remainder.
  void decompose(const std::string& linear, const std::vector<std::size_t>& axes);

  /// Is expression `id` loaded as a pack of `schedule.vector` along `axis`?
  bool is_pack(std::uint32_t id, std::size_t axis) const;
  std::string pack_type_of(std::uint32_t id, int count) const;
  bool is_pack_output(std::size_t output, std::size_t axis) const;
  /// The type of such a pack, and the text that loads it at the current indices.
  std::string pack_type(std::uint32_t id) const;
  std::string pack_load(std::uint32_t id);
  /// Is such a load's pack across two of the memory? (shifted rows)
  bool is_across(std::uint32_t id) const;
  /// Shifted rows, where the indices of the row are known: the text of its shift.
  std::string shift();
  /// One past the largest offset that a load reads.
  std::string load_end_name(std::uint32_t id);
  /// Shifted rows: the name of a row's length; among the elements of a pack the condition that one is in the row.
  std::string row_length, inside;
  /// Address of a load or store at the current indices.
  std::string load_address(std::uint32_t id);
  std::string store_address(std::size_t output);
  /// The condition under which a load may be made, "" where it always may; that of bounds by a name; one bound.
  std::string load_guard(std::uint32_t id);
  std::string guard(const std::vector<Bound>& bounds, const std::string& name);
  std::string bound(const Bound& bound, const std::string& role);
  /// `const T v<id> = ...` for one expression (no Reduce).
  std::string right_side(std::uint32_t id);
  void statement(std::uint32_t id);
  /// The value of an output in its register type.
  std::string output_value(std::size_t output);
  void store(std::size_t output);
  std::string guard_of(std::size_t output);

  /// Between these, `e` counts the elements of a pack along `axis`, and indices are those of the element. Bounds are asked of the
  /// pack's first: a pack lies on one side of each.
  void begin_pack(std::size_t axis);
  void end_pack();
  /// Outputs of a pack along `axis`: the arrays of those that are stored as packs; at each element (between begin_pack and end_pack) its
  /// value, stored at once where the output is no pack; the packs.
  void declare_packs(const std::vector<std::size_t>& outputs, std::size_t axis);
  void put_elements(const std::vector<std::size_t>& outputs, std::size_t axis);
  void store_packs(const std::vector<std::size_t>& outputs, std::size_t axis);

  /// Type of an accumulator of neighbouring elements.
  std::string accumulator_type(const Accumulator& state) const;
  std::string accumulator_init(const Accumulator& state) const;
  /// Type of the accumulator of a whole thread, warp, block or slab: the same, or in a compensated schedule a sum and its error
  /// (rows that are folded beside columns stay plain: their chains are short).
  bool is_compensated(const Accumulator& state) const;
  /// Does a chain take the elements of a pack together?
  bool takes_packs(const Accumulator& state) const;
  std::string chain_type(const Accumulator& state) const;
  std::string chain_init(const Accumulator& state) const;
  /// `text`, of the accumulator's type, as one of the chain's type.
  std::string chained(const Accumulator& state, const std::string& text) const;
  /// Declares the functions that fold two of either, and gives the name of the chain's.
  void declare_folds(const std::vector<Accumulator>& states);
  std::string chain_fold(const Accumulator& state) const;
  /// Statement that folds the element at the current point into `acc`.
  std::string fold_element(const Accumulator& state, const std::string& acc, const std::vector<std::size_t>& reduced);
  /// Statement with which a chain takes the elements of a pack, `part`.
  std::string take_pack(const Accumulator& state, int vector) const;
  /// Folds `acc` of each state over the `lanes` threads of a row, of a block's `threads`: in a warp by shuffles, beyond it through shared
  /// memory with one barrier for all states.
  void fold_threads(const std::vector<const Accumulator*>& states, int lanes, int threads);
  /// The finished value of one result from its chain's accumulator.
  std::string finished(const Accumulator& state, std::uint32_t result, const std::string& acc);

  void close_entry(KernelSource& source, const std::string& suffix, std::int64_t blocks, int threads);

 private:
  ParamBlock::IndexName pack_index_;  // set among the elements of a pack: the indices of its first
  std::vector<bool> narrow_;
  std::set<std::uint32_t> random_;  // expressions of this entry that draw random bits
};

void emit_cuda_pointwise(CudaWriter& writer, KernelSource& source);
void emit_cuda_rows(CudaWriter& writer, KernelSource& source);
void emit_cuda_row_pipeline(CudaWriter& writer, KernelSource& source);
void emit_cuda_columns(CudaWriter& writer, KernelSource& source);
void emit_cuda_short_columns(CudaWriter& writer, KernelSource& source);
void emit_cuda_transpose(CudaWriter& writer, KernelSource& source);
void emit_cuda_interleave(CudaWriter& writer, KernelSource& source);
/// The second launch of a split reduction: a warp folds the partials of a kept point in a fixed order.
void emit_cuda_finish(CudaWriter& writer, KernelSource& source);

/// Byte offset of an accumulator's partials in the workspace, laid out [kept point][slab].
std::int64_t partial_offset(const CudaWriter& writer, std::size_t state);
std::int64_t partial_bytes(const CudaWriter& writer);

}  // namespace fxfuser::codegen
