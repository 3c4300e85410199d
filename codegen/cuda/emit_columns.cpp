// Columns: the innermost axis is kept. `threads_per_row` threads lie across it, each with `vector` neighbours; `rows_per_block`
// threads deep walk over the reduced axes and meet in shared memory.

#include <algorithm>

#include "codegen/cuda/column_runs.h"

namespace fxfuser::codegen {
namespace {

class Columns {
 public:
  Columns(CudaWriter& writer, KernelSource& source)
      : w_(writer),
        source_(source),
        fusion_(writer.fusion),
        s_(writer.schedule),
        passes_(writer.passes),
        reduced_(writer.reduced_axes()),
        kept_(writer.kept_axes()),
        available_(fusion_.body.size(), false),
        across_(s_.threads_per_row),
        deep_(s_.threads / s_.threads_per_row),
        vector_(s_.vector),
        split_(s_.split > 1) {
    inner_ = kept_.back();
    kept_.pop_back();
    w_.value_name = [this](std::uint32_t id) { return available_[id] ? fmt::format("r{}[e]", id) : fmt::format("v{}", id); };
  }

  void run() {
    const std::int64_t width = static_cast<std::int64_t>(across_) * vector_;
    const std::int64_t tiles = (fusion_.axes[inner_].size + width - 1) / width;
    std::int64_t blocks = tiles;
    for (std::size_t axis : kept_) blocks *= fusion_.axes[axis].size;
    std::string block = "fxf_block()";
    if (split_) {
      w_.body.linef("const int slab = fxf_block() % {0}, tile = fxf_block() / {0};", w_.params.number("split", s_.split));
      block = "tile";
    }
    w_.body.linef("const int lane = fxf_thread() % {0}, deep = fxf_thread() / {0};", across_);
    const std::string count = w_.params.number("tiles", tiles);
    w_.body.linef("const {0} i{1} = (({0}){2} % {3} * {4} + lane) * {5};", w_.index(), inner_, block, count, across_, vector_);
    w_.body.linef("const bool live = i{} < {};", inner_, w_.params.size(inner_));
    if (!kept_.empty()) {
      w_.body.linef("const {0} outer = ({0}){1} / {2};", w_.index(), block, count);
      w_.decompose("outer", kept_);
    }
    w_.body.linef("const {} length = {};", w_.index(), w_.params.number("column_length", fusion_.reduced_numel()));
    w_.declare_folds(passes_.accumulators);
    for (std::uint32_t pass = 0; pass < passes_.count; ++pass) {
      row_values(pass);
      loop(pass);
    }
    split_ ? partials() : row_outputs();
    w_.close_entry(source_, "", blocks * s_.split, s_.threads);
  }

 private:
  void begin_elements() {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int e = 0; e < {}; ++e)", vector_));
    if (vector_ > 1) w_.begin_pack(inner_);
  }

  void end_elements() {
    if (vector_ > 1) w_.end_pack();
    w_.body.end();
  }

  /// Row values of every element a thread has; dead threads read the first column.
  void row_values(std::uint32_t pass) {
    std::vector<std::uint32_t> roots;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (!passes_.full[id] && !available_[id] && fusion_.body[id].kind != ExprKind::Reduce && passes_.pass[id] <= pass) roots.push_back(id);
    }
    const std::vector<std::uint32_t> ids = needed(fusion_, roots, available_);
    if (ids.empty()) return;
    const auto is_pack = [&](std::uint32_t id) { return w_.is_pack(id, inner_) && fusion_.body[id].indirect.empty(); };
    for (std::uint32_t id : ids) {
      w_.body.linef("{} r{}[{}];", register_type(fusion_.body[id].dtype), id, vector_);
      if (is_pack(id)) w_.body.linef("const auto x{0} = live ? ({1}) : {2}{{}};", id, w_.pack_load(id), w_.pack_type(id));
    }
    begin_elements();
    w_.body.begin("if (live)");
    for (std::uint32_t id : ids) {
      if (is_pack(id)) w_.body.linef("const {0} v{1} = fxf_get(x{1}, e);", register_type(fusion_.body[id].dtype), id);
      else w_.statement(id);
    }
    for (std::uint32_t id : ids) w_.body.linef("r{0}[e] = v{0};", id);
    w_.body.end();
    end_elements();
    for (std::uint32_t id : ids) available_[id] = true;
  }

  /// Loads that a whole run has in flight before the first of its values is used: at plain addresses, or at those of row values.
  bool is_early(std::uint32_t id) const {
    const Expr& expr = fusion_.body[id];
    if (expr.kind != ExprKind::Load || !passes_.full[id] || !expr.bounds.empty()) return false;
    return std::all_of(expr.indirect.begin(), expr.indirect.end(), [&](const Indirect& term) { return available_[term.expr] && w_.is_pack(id, inner_); });
  }

  /// The schedule's unroll, less where what is in flight would not fit the registers.
  int run_length(const std::vector<const Accumulator*>& states, const std::vector<std::uint32_t>& early) const {
    int load_words = 0;
    for (std::uint32_t id : early) {
      const int bytes = static_cast<int>(ir::itemsize(fusion_.body[id].dtype)) * vector_;
      load_words += w_.is_pack(id, inner_) ? (bytes + 3) / 4 : vector_ * std::max(bytes / vector_ / 4, 1);
    }
    return fitting_run(w_, states, load_words);
  }

  void loop(std::uint32_t pass) {
    const auto [states, outputs, roots] = pass_work(fusion_, passes_, pass);
    if (roots.empty()) return;
    declare_places(w_, states);
    const std::vector<std::uint32_t> ids = needed(fusion_, roots, available_);
    std::vector<std::uint32_t> early;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(early), [&](std::uint32_t id) { return is_early(id); });
    // A run of reduced points is in flight at once, each with a fold of its own; these meet by halves.
    const int run = run_length(states, early);
    w_.body.begin("");
    // Slabs take turns at the runs, so that what is read at one time lies together.
    w_.body.linef("{} first = {}deep;", w_.index(), split_ ? fmt::format("slab * {} + ", run * deep_) : "");
    w_.body.begin(fmt::format("for (; live && first + {} < length; first += {}{})", (run - 1) * deep_, split_ ? "split * " : "", run * deep_));
    round({ids, early, states, outputs, run, false});
    w_.body.end();
    if (run > 1) {
      w_.body.begin("if (live && first < length)");
      round({ids, early, states, outputs, run, true});
      w_.body.end();
    }
    w_.body.end();
    meet(states);
    if (!split_) results(states);
  }

  /// What one run of reduced points needs.
  struct Run {
    const std::vector<std::uint32_t>& ids;
    const std::vector<std::uint32_t>& early;
    const std::vector<const Accumulator*>& states;
    const std::vector<std::size_t>& outputs;
    int length;
    bool guarded;  // some of its points lie past the end
  };

  void round(const Run& run) {
    load_run(run);
    begin_run(w_, run.states, run.length);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", run.length));
    w_.body.linef("const {} at = first + u * {};", w_.index(), deep_);
    if (run.guarded) w_.body.begin("if (at < length)");
    w_.decompose("at", reduced_);
    point(run);
    if (run.guarded) w_.body.end();
    w_.body.end();
    end_run(w_, run.states, run.length);
  }

  /// Loads without a branch between them, so that all are in flight; past the end the last point is read again and not used.
  void load_run(const Run& run) {
    if (run.early.empty()) return;
    for (std::uint32_t id : run.early) {
      if (w_.is_pack(id, inner_)) w_.body.linef("{} x{}[{}];", w_.pack_type(id), id, run.length);
      else w_.body.linef("{} x{}[{}];", register_type(fusion_.body[id].dtype), id, run.length * vector_);
    }
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", run.length));
    const std::string point = fmt::format("first + u * {}", deep_);
    w_.body.linef("const {} at = {};", w_.index(), run.guarded ? fmt::format("{0} < length ? {0} : length - 1", point) : point);
    w_.decompose("at", reduced_);
    bool single = false;
    for (std::uint32_t id : run.early) {
      if (w_.is_pack(id, inner_)) w_.body.linef("x{}[u] = {};", id, w_.pack_load(id));
      else single = true;
    }
    if (single) {
      begin_elements();
      for (std::uint32_t id : run.early) {
        if (!w_.is_pack(id, inner_)) w_.body.linef("x{}[u * {} + e] = {};", id, vector_, w_.right_side(id));
      }
      end_elements();
    }
    w_.body.end();
  }

  /// One reduced point of a run.
  void point(const Run& run) {
    const auto is_loaded = [&](std::uint32_t id) { return std::find(run.early.begin(), run.early.end(), id) != run.early.end(); };
    for (std::uint32_t id : run.ids) {
      if (w_.is_pack(id, inner_) && !is_loaded(id)) w_.body.linef("const auto x{} = {};", id, w_.pack_load(id));
    }
    w_.declare_packs(run.outputs, inner_);
    begin_elements();
    for (std::uint32_t id : run.ids) {
      const std::string type = register_type(fusion_.body[id].dtype);
      if (w_.is_pack(id, inner_)) w_.body.linef("const {} v{} = fxf_get(x{}{}, e);", type, id, id, is_loaded(id) ? "[u]" : "");
      else if (is_loaded(id)) w_.body.linef("const {0} v{1} = x{1}[u * {2} + e];", type, id, vector_);
      else w_.statement(id);
    }
    for (const Accumulator* state : run.states) w_.body.line(w_.fold_element(*state, run_fold(*state, run.length), reduced_));
    w_.put_elements(run.outputs, inner_);
    end_elements();
    w_.store_packs(run.outputs, inner_);
  }

  void results(const std::vector<const Accumulator*>& states) {
    for (const Accumulator* state : states) {
      for (std::uint32_t result : state->results) {
        w_.body.linef("{} r{}[{}];{}", register_type(fusion_.body[result].dtype), result, vector_, comment_of(fusion_.body[result]));
        w_.body.linef("FXF_UNROLL for (int e = 0; e < {}; ++e) r{}[e] = {};", vector_, result, w_.finished(*state, result, fmt::format("acc{}[e]", state->expr)));
        available_[result] = true;
      }
    }
  }

  /// All threads of a column fold the partial values of its whole depth, in order.
  void meet(const std::vector<const Accumulator*>& states) {
    if (deep_ == 1 || states.empty()) return;
    for (const Accumulator* state : states) {
      w_.body.linef("typedef {0} state{1};\nFXF_SHARED(state{1}, scratch{1}, {2});", w_.chain_type(*state), state->expr, s_.threads * vector_);
      w_.body.linef("FXF_UNROLL for (int e = 0; e < {0}; ++e) FXF_PLACE(scratch{1}, (deep * {0} + e) * {2} + lane, acc{1}[e]);", vector_, state->expr, across_);
    }
    w_.body.line("fxf_barrier();");
    // The columns are shared out among the threads of the depth; each result takes the place of its column's first value.
    for (const Accumulator* state : states) {
      w_.body.linef("for (int e = deep; e < {0}; e += {1}) FXF_PLACE(scratch{2}, e * {3} + lane, fxf_fold_column<{1}>(scratch{2}, e * {3} + lane, {4}, {5}));", vector_, deep_,
                    state->expr, across_, vector_ * across_, w_.chain_fold(*state));
    }
    w_.body.line("fxf_barrier();");
    for (const Accumulator* state : states) {
      w_.body.linef("FXF_UNROLL for (int e = 0; e < {0}; ++e) acc{1}[e] = FXF_TAKE(scratch{1}, e * {2} + lane);", vector_, state->expr, across_);
    }
  }

  void row_outputs() {
    row_values(passes_.count);
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) {
      if (is_row_output(fusion_, passes_, i)) outputs.push_back(i);
    }
    if (outputs.empty()) return;
    w_.body.begin("if (live && deep == 0)");
    w_.declare_packs(outputs, inner_);
    begin_elements();
    w_.put_elements(outputs, inner_);
    end_elements();
    w_.store_packs(outputs, inner_);
    w_.body.end();
  }

  void partials() {
    const std::string outer = kept_.empty() ? "0" : "outer";
    w_.body.begin("if (live && deep == 0)");
    begin_elements();
    w_.body.linef("const {} cell = ({} * {} + {}) * split + slab;", w_.index(), outer, w_.params.size(inner_), w_.index_name(inner_));
    for (std::size_t i = 0; i < passes_.accumulators.size(); ++i) {
      const Accumulator& state = passes_.accumulators[i];
      w_.body.linef("fxf_put_partial(({}*)(workspace + {}) + cell, acc{}[e]);", w_.chain_type(state),
                    w_.params.number(fmt::format("partial{}", state.expr), partial_offset(w_, i)), state.expr);
    }
    end_elements();
    w_.body.end();
  }

  CudaWriter& w_;
  KernelSource& source_;
  const Fusion& fusion_;
  const Schedule& s_;
  const Passes& passes_;
  std::vector<std::size_t> reduced_, kept_;
  std::vector<bool> available_;
  int across_, deep_, vector_;
  bool split_;
  std::size_t inner_ = 0;
};

}  // namespace

void emit_cuda_columns(CudaWriter& writer, KernelSource& source) { Columns(writer, source).run(); }

}  // namespace fxfuser::codegen
