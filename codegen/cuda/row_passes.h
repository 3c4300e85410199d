#pragma once
// What the emitters of rows share: the packs that a thread holds of a row, and one pass over a thread's part of a row: its loop, the
// work on one pack, and the folds of what a thread has seen. Which rows there are, and how threads exchange their folds, is the
// emitters'.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/cuda/column_folds.h"
#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {

class RowPasses {
 public:
  RowPasses(CudaWriter& writer, ColumnFolds& columns);

  CudaWriter& w;
  const Fusion& fusion;
  const Schedule& s;
  const Passes& passes;
  std::vector<std::size_t> reduced;  // axes, outermost first
  std::size_t inner = 0;             // the last of them
  int vector = 1;                    // elements of a pack
  std::vector<bool> available;       // per expression: v<id>, or what is kept of it, can be named here
  /// Text that has a pack of a load at the current indices: from memory, unless an emitter says otherwise.
  std::function<std::string(std::uint32_t)> pack_source;
  /// What follows the work of a pass on a pack.
  std::function<void()> pack_done;

  /// Is the thread's part of a row worked on in an unrolled loop over its packs, `k`? Else in a loop over the row.
  bool is_unrolled() const { return s.kind == ScheduleKind::Normalization && s.tier != Tier::MultiPass; }
  bool is_split() const { return s.split > 1; }

  bool is_full_pack(std::uint32_t id) const;
  bool is_held(std::uint32_t id) const;
  PassWork work_of(std::uint32_t pass) const;
  /// Expressions that a pass needs, but for row values.
  std::vector<std::uint32_t> ids_of(std::uint32_t pass) const;
  /// Packs that the first pass or several passes read, and that no registers hold.
  std::vector<std::uint32_t> repeated() const;

  /// Declares the row's length and the functions that fold.
  void declare();
  /// Shifted rows, where the indices of the row are known: its shift, and where its packs end.
  void declare_shift();
  /// Where the thread's packs of a row end, counted from the border at which its first pack starts.
  std::string end() const;
  /// Packs that stay in registers, loaded where `guard` holds (empty: always) and the row has not ended.
  void hold(const std::vector<std::uint32_t>& ids, const std::string& guard);
  /// Counts packs as held that the emitter has put into x<id>[k].
  void add_held(const std::vector<std::uint32_t>& ids);
  /// Where `guard` holds (empty: always), `for` over the thread's packs, `k`, that are in the row, with `at` and the indices of the reduced axes.
  void begin_unrolled(const std::string& guard);
  void end_unrolled(const std::string& guard);
  /// Statements of the row values that can be had before a pass.
  void row_values(std::uint32_t pass);

  /// One pass over the row. `acc<id>` has the thread's fold of each state afterwards; it is declared here unless `declared`.
  /// `keeping`: may costly values stay in registers for the passes after this one?
  void loop(std::uint32_t pass, const PassWork& work, bool keeping, bool declared = false);
  /// All passes over one row; `folded` follows each pass with the states that it fed.
  void all_passes(const std::function<void(const std::vector<const Accumulator*>&)>& folded);
  /// Names the results of a fold, whose text is given.
  void name_results(const Accumulator& state, const std::string& folded);
  /// Expressions of the outputs that are stored once a row.
  std::vector<std::uint32_t> row_output_roots() const;
  /// Stores them where `guard` holds.
  void store_row_outputs(const std::string& guard);

 private:
  void positions();
  void begin_packs();
  void end_packs();
  bool is_chained(const Accumulator& state) const;
  bool holds_many() const;
  void renew(const std::vector<std::uint32_t>& ids);
  void declare_parts(const Accumulator& state);
  bool needed_after(std::uint32_t pass, std::uint32_t id) const;
  std::vector<std::uint32_t> kept_from(std::uint32_t pass, const std::vector<std::uint32_t>& ids) const;
  void elements(std::uint32_t pass, const std::vector<std::uint32_t>& ids, const PassWork& work, const std::vector<std::uint32_t>& keeps);

  ColumnFolds& columns_;
  std::vector<std::uint32_t> held_, kept_;
};

}  // namespace fxfuser::codegen
