// Short columns: the innermost axis is kept and so short that rows of it fill no thread's pack. Several rows lie side by side: threads
// take packs of the memory as it is, and what repeats every `rows_across` rows is the column that each place of a pack belongs
// to. A thread thus folds every place apart, over all its packs; threads, and places of one column, meet in shared memory.

#include <algorithm>

#include "codegen/cuda/column_runs.h"

namespace fxfuser::codegen {
namespace {

class ShortColumns {
 public:
  ShortColumns(CudaWriter& writer, KernelSource& source)
      : w_(writer),
        source_(source),
        fusion_(writer.fusion),
        s_(writer.schedule),
        inner_(fusion_.axes.size() - 1),
        row_(inner_ - 1),
        kept_(writer.kept_axes()),
        early_(fusion_.body.size(), false),
        across_(s_.threads_per_row),
        deep_(s_.rows_per_block),
        vector_(s_.vector),
        columns_(static_cast<int>(fusion_.axes[inner_].size)),
        work_(pass_work(fusion_, writer.passes, 0)) {
    kept_.pop_back();
  }

  void run() {
    std::int64_t blocks = 1;
    for (std::size_t axis : kept_) blocks *= fusion_.axes[axis].size;
    const bool split = s_.split > 1;
    if (split) w_.body.linef("const int slab = fxf_block() % {0}, tile = fxf_block() / {0};", w_.params.number("split", s_.split));
    w_.body.linef("const int lane = fxf_thread() % {0}, deep = fxf_thread() / {0};", across_);
    if (!kept_.empty()) {
      w_.body.linef("const {0} outer = ({0}){1};", w_.index(), split ? "tile" : "fxf_block()");
      w_.decompose("outer", kept_);
    }
    w_.body.linef("const {} length = {}, groups = length / {};", w_.index(), w_.params.number("column_length", fusion_.axes[row_].size), s_.rows_across);
    w_.declare_folds(w_.passes.accumulators);
    w_.value_name = [this](std::uint32_t id) { return early_[id] ? fmt::format("r{}[e]", id) : fmt::format("v{}", id); };
    row_values();
    loop();
    rest();
    meet();
    w_.value_name = [](std::uint32_t id) { return fmt::format("v{}", id); };
    w_.body.begin(fmt::format("if (fxf_thread() < {})", columns_));
    w_.body.linef("const {} i{} = fxf_thread();", w_.index(), inner_);
    split ? partials() : outputs();
    w_.body.end();
    w_.close_entry(source_, "", blocks * s_.split, s_.threads);
  }

 private:
  bool is_pack(std::uint32_t id) const { return fusion_.body[id].kind == ExprKind::Load && w_.passes.full[id]; }

  /// The row and the column of element `place` of the group of rows `at`.
  void place(const std::string& at, const std::string& place) {
    w_.body.linef("const {0} i{1} = {2} * {3} + ({4}) / {5};", w_.index(), row_, at, s_.rows_across, place, columns_);
    column(place);
  }
  void column(const std::string& place) { w_.body.linef("const {} i{} = ({}) % {};", w_.index(), inner_, place, columns_); }
  std::string element() const { return fmt::format("lane * {} + e", vector_); }

  void begin_elements() {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int e = 0; e < {}; ++e)", vector_));
  }

  /// What no row changes, for every place of a thread's packs.
  void row_values() {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t id : needed(fusion_, work_.roots, std::vector<bool>(fusion_.body.size(), false)))
      if (!w_.passes.full[id]) ids.push_back(id);
    if (ids.empty()) return;
    for (std::uint32_t id : ids) w_.body.linef("{} r{}[{}];", register_type(fusion_.body[id].dtype), id, vector_);
    begin_elements();
    column(element());
    for (std::uint32_t id : ids) w_.statement(id);
    for (std::uint32_t id : ids) w_.body.linef("r{0}[e] = v{0};", id);
    w_.body.end();
    for (std::uint32_t id : ids) early_[id] = true;
  }

  /// The schedule's unroll, less where what is in flight would not fit the registers.
  int run_length() const {
    int load_words = 0;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id)
      if (is_pack(id)) load_words += std::max(static_cast<int>(ir::itemsize(fusion_.body[id].dtype)) * vector_ / 4, 1);
    return fitting_run(w_, work_.states, load_words);
  }

  void loop() {
    declare_places(w_, work_.states);
    const int run = run_length(), step = run * deep_;
    // Threads past the last whole row of threads have no part in it.
    const std::string works = across_ * deep_ < s_.threads ? fmt::format("deep < {} && ", deep_) : "";
    w_.body.begin("");
    // Slabs take turns at the runs, so that what is read at one time lies together.
    w_.body.linef("{} first = {}deep;", w_.index(), s_.split > 1 ? fmt::format("slab * {} + ", step) : "");
    w_.body.begin(fmt::format("for (; {}first + {} < groups; first += {}{})", works, (run - 1) * deep_, s_.split > 1 ? "split * " : "", step));
    round(run, false);
    w_.body.end();
    if (run > 1) {
      w_.body.begin(fmt::format("if ({}first < groups)", works));
      round(run, true);
      w_.body.end();
    }
    w_.body.end();
  }

  /// A run of packs, loaded without a branch between them; `guarded`: past the end the last group is read again and not used.
  void round(int run, bool guarded) {
    std::vector<std::uint32_t> packs;
    for (std::uint32_t id : needed(fusion_, work_.roots, early_))
      if (is_pack(id)) packs.push_back(id);
    for (std::uint32_t id : packs) w_.body.linef("{} x{}[{}];", w_.pack_type(id), id, run);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", run));
    const std::string point = fmt::format("first + u * {}", deep_);
    w_.body.linef("const {} at = {};", w_.index(), guarded ? fmt::format("{0} < groups ? {0} : groups - 1", point) : point);
    place("at", fmt::format("lane * {}", vector_));
    for (std::uint32_t id : packs) w_.body.linef("x{}[u] = {};", id, w_.pack_load(id));
    w_.body.end();
    begin_run(w_, work_.states, run);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", run));
    w_.body.linef("const {} at = {};", w_.index(), point);
    if (guarded) w_.body.begin("if (at < groups)");
    begin_elements();
    place("at", element());
    fold([&](std::uint32_t id) { return fmt::format("fxf_get(x{}[u], e)", id); }, [&](const Accumulator& state) { return run_fold(state, run); });
    w_.body.end();
    if (guarded) w_.body.end();
    w_.body.end();
    end_run(w_, work_.states, run);
  }

  /// One element, with its loads as `loaded` says, into what `into` names.
  void fold(const std::function<std::string(std::uint32_t)>& loaded, const std::function<std::string(const Accumulator&)>& into) {
    for (std::uint32_t id : needed(fusion_, work_.roots, early_)) {
      if (is_pack(id)) w_.body.linef("const {} v{} = {};", register_type(fusion_.body[id].dtype), id, loaded(id));
      else w_.statement(id);
    }
    for (const Accumulator* state : work_.states) w_.body.line(w_.fold_element(*state, into(*state), {row_}));
  }

  /// Rows beyond the last whole group, element by element, are the first slab's.
  void rest() {
    w_.body.begin(fmt::format("if ({}deep == 0)", s_.split > 1 ? "slab == 0 && " : ""));
    begin_elements();
    place("groups", element());
    w_.body.begin(fmt::format("if (i{} < length)", row_));
    for (const Accumulator* state : work_.states) w_.body.linef("{} last{} = {};", w_.accumulator_type(*state), state->expr, w_.accumulator_init(*state));
    fold([&](std::uint32_t id) { return w_.right_side(id); }, [&](const Accumulator& state) { return fmt::format("last{}", state.expr); });
    for (const Accumulator* state : work_.states)
      w_.body.linef("acc{0}[e] = {1}(acc{0}[e], {2});", state->expr, w_.chain_fold(*state), w_.chained(*state, fmt::format("last{}", state->expr)));
    w_.body.end();
    w_.body.end();
    w_.body.end();
  }

  /// Each place of a group of rows is folded over the depth of the block, then the places of a column, both in order.
  void meet() {
    const int places = across_ * vector_;
    for (const Accumulator* state : work_.states) {
      w_.body.linef("typedef {0} state{1};\nFXF_SHARED(state{1}, scratch{1}, {2});", w_.chain_type(*state), state->expr, places * deep_);
      const bool all = across_ * deep_ == s_.threads;
      if (!all) w_.body.begin(fmt::format("if (deep < {})", deep_));
      w_.body.linef("FXF_UNROLL for (int e = 0; e < {0}; ++e) FXF_PLACE(scratch{1}, deep * {2} + {3}, acc{1}[e]);", vector_, state->expr, places, element());
      if (!all) w_.body.end();
    }
    w_.body.line("fxf_barrier();");
    for (const Accumulator* state : work_.states)
      w_.body.linef("for (int j = fxf_thread(); j < {0}; j += {1}) FXF_PLACE(scratch{2}, j, fxf_fold_column<{3}>(scratch{2}, j, {0}, {4}));", places, s_.threads, state->expr, deep_, w_.chain_fold(*state));
    w_.body.line("fxf_barrier();");
  }

  std::string total(const Accumulator& state) const { return fmt::format("fxf_fold_column<{}>(scratch{}, i{}, {}, {})", s_.rows_across, state.expr, inner_, columns_, w_.chain_fold(state)); }

  void partials() {
    w_.body.linef("const {} cell = {} * split + slab;", w_.index(), kept_.empty() ? w_.index_name(inner_) : fmt::format("(outer * {} + {})", columns_, w_.index_name(inner_)));
    for (std::size_t i = 0; i < w_.passes.accumulators.size(); ++i) {
      const Accumulator& state = w_.passes.accumulators[i];
      w_.body.linef("fxf_put_partial(({}*)(workspace + {}) + cell, {});", w_.chain_type(state), w_.params.number(fmt::format("partial{}", state.expr), partial_offset(w_, i)), total(state));
    }
  }

  void outputs() {
    std::vector<bool> available(fusion_.body.size(), false);
    for (const Accumulator* state : work_.states) {
      w_.body.linef("const auto acc{} = {};", state->expr, total(*state));
      for (std::uint32_t result : state->results) {
        w_.body.linef("const {} v{} = {};{}", register_type(fusion_.body[result].dtype), result, w_.finished(*state, result, fmt::format("acc{}", state->expr)), comment_of(fusion_.body[result]));
        available[result] = true;
      }
    }
    for (std::uint32_t id : needed_by_outputs(fusion_, available)) w_.statement(id);
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) w_.store(i);
  }

  CudaWriter& w_;
  KernelSource& source_;
  const Fusion& fusion_;
  const Schedule& s_;
  std::size_t inner_, row_;
  std::vector<std::size_t> kept_;  // but for the innermost
  std::vector<bool> early_;        // row values: r<id>[e]
  int across_, deep_, vector_, columns_;
  PassWork work_;
};

}  // namespace

void emit_cuda_short_columns(CudaWriter& writer, KernelSource& source) { ShortColumns(writer, source).run(); }

}  // namespace fxfuser::codegen
