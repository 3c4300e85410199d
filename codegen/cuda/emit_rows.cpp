// Rows: the innermost axis is reduced. A thread folds each place of its packs apart and these at the end, which keeps the
// chains of additions short and independent. `threads_per_row` threads share a row, `rows_per_block` rows a block. In the register
// tiers each thread holds its packs of the row over all passes; in the multi-pass tier (and in reductions, which have one
// pass) the row is read in each.

#include <algorithm>

#include "codegen/cuda/column_folds.h"
#include "codegen/cuda/cuda_writer.h"
#include "codegen/cuda/pack_ring.h"

namespace fxfuser::codegen {
namespace {

class Rows {
 public:
  Rows(CudaWriter& writer, KernelSource& source)
      : w_(writer),
        source_(source),
        fusion_(writer.fusion),
        s_(writer.schedule),
        passes_(writer.passes),
        reduced_(writer.reduced_axes()),
        available_(fusion_.body.size(), false),
        resident_(s_.kind == ScheduleKind::Normalization && (s_.tier == Tier::Warp || s_.tier == Tier::Block)),
        split_(s_.split > 1),
        columns_(writer),
        ring_(writer) {
    inner_ = reduced_.empty() ? 0 : reduced_.back();
    vector_ = reduced_.empty() ? 1 : s_.vector;
  }

  void run() {
    const std::int64_t rows = fusion_.kept_numel();
    const std::int64_t row_blocks = (rows + s_.rows_per_block - 1) / s_.rows_per_block;
    std::string block = "fxf_block()";
    if (split_) {
      w_.body.linef("const int slab = fxf_block() % {0}, tile = fxf_block() / {0};", w_.params.number("split", s_.split));
      block = "tile";
    }
    w_.body.linef("const int lane = fxf_thread() % {};", s_.threads_per_row);
    if (columns_.any()) {
      before_rows(row_blocks);
      block = "round";
    }
    w_.body.linef("const {0} row = ({0}){1} * {2} + fxf_thread() / {3};", w_.index(), block, s_.rows_per_block, s_.threads_per_row);
    const std::string count = w_.params.number("rows", rows);
    if (s_.rows_per_block == 1 && rows > 0) w_.body.line("const bool live = true;");
    else w_.body.linef("const bool live = row < {};", count);
    const std::vector<std::size_t> kept = w_.kept_axes();
    if (!kept.empty()) {
      w_.body.linef("const {} here = live ? row : 0;", w_.index());
      w_.decompose("here", kept);
    }
    if (rows == 0) w_.body.line("if (!live) return;");
    if (!columns_.any()) common();
    if (split_) {
      w_.body.linef("const {0} chunk = (length / {1} + split - 1) / split * {1};", w_.index(), vector_);
      w_.body.linef("const {0} low = slab * chunk, high = low + chunk < length ? low + chunk : length;", w_.index());
    }
    if (resident_) load_resident();
    for (std::uint32_t pass = 0; pass < passes_.count; ++pass) {
      row_values(pass);
      loop(pass);
    }
    split_ ? partials() : row_outputs();
    if (columns_.any()) after_rows();
    w_.close_entry(source_, "", columns_.any() ? s_.slabs : row_blocks * s_.split, s_.threads);
    source_.launches.back().shared_bytes = static_cast<std::uint32_t>(ring_.shared_bytes());
  }

 private:
  void common() {
    w_.body.linef("const {} length = {};", w_.index(), w_.params.number("row_length", fusion_.reduced_numel()));
    w_.declare_folds(passes_.accumulators);
  }

  /// Row + column: the block's columns, and what every row reads alike, are in registers while it walks over the rows.
  void before_rows(std::int64_t row_blocks) {
    common();
    columns_.declare();
    std::vector<std::uint32_t> alike;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (is_full_pack(id) && fusion_.body[id].indirect.empty() && (fusion_.body[id].depends & ~fusion_.reduced_mask()) == 0) alike.push_back(id);
    }
    hold(alike, "at < length");
    blocks_ = w_.params.number("row_blocks", row_blocks);
    w_.body.line("int turn = 0;");
    if (s_.stages > 1) {
      std::vector<std::uint32_t> ids = repeated();
      std::erase_if(ids, [&](std::uint32_t id) { return !fusion_.body[id].indirect.empty(); });
      ring_.set(std::move(ids));
    }
    if (ring_.any()) ring_.begin([&](const std::string& which, const std::function<void()>& fetches) { fetch_round(which, fetches); });
    declare_early();
    w_.body.begin(fmt::format("for ({0} round = fxf_block(); round < {1}; round += {2})", w_.index(), blocks_, w_.params.number("slabs", s_.slabs)));
    if (ring_.any()) ring_.advance([&](const std::string& which, const std::function<void()>& fetches) { fetch_round(which, fetches); });
    for (std::uint32_t id : early_) w_.body.linef("const {0} v{1} = next{1};", register_type(fusion_.body[id].dtype), id);
    load_early(fmt::format("round + {}", w_.params.number("slabs", s_.slabs)));
    for (std::uint32_t id : early_) available_[id] = true;
  }

  /// Row values that are loaded a round ahead.
  void declare_early() {
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      const Expr& expr = fusion_.body[id];
      if (expr.kind == ExprKind::Load && !passes_.full[id] && expr.depends != 0 && expr.indirect.empty() && expr.bounds.empty()) early_.push_back(id);
    }
    for (std::uint32_t id : early_) w_.body.linef("{0} next{1} = ({0})0;", register_type(fusion_.body[id].dtype), id);
    load_early("fxf_block()");
  }

  void load_early(const std::string& round) {
    if (early_.empty()) return;
    w_.body.begin("");
    w_.body.linef("const {} coming = {};", w_.index(), round);
    begin_coming("coming");
    for (std::uint32_t id : early_) w_.body.linef("next{} = {};", id, w_.right_side(id));
    w_.body.end();
    w_.body.end();
  }

  /// The row of a round to come, where there is one.
  void begin_coming(const std::string& round) {
    w_.body.linef("const {0} row = ({0}){1} * {2} + fxf_thread() / {3};", w_.index(), round, s_.rows_per_block, s_.threads_per_row);
    w_.body.begin(fmt::format("if ({} < {} && row < {})", round, blocks_, w_.params.number("rows", fusion_.kept_numel())));
    w_.decompose("row", w_.kept_axes());
  }

  /// The fetches of a round to come, where there is such a row.
  void fetch_round(const std::string& which, const std::function<void()>& fetches) {
    begin_coming(which);
    begin_resident("at < length");
    fetches();
    w_.body.end();
    w_.body.end();
    w_.body.end();
  }

  void after_rows() {
    w_.body.line("++turn;");
    w_.body.end();
    columns_.store();
  }

  /// Packs that stay in registers, loaded where `guard` holds.
  void hold(const std::vector<std::uint32_t>& ids, const std::string& guard) {
    if (ids.empty()) return;
    for (std::uint32_t id : ids) w_.body.linef("{} x{}[{}];", w_.pack_type(id), id, s_.vectors_per_thread);
    begin_resident(guard);
    for (std::uint32_t id : ids) w_.body.linef("x{}[k] = {};", id, w_.pack_load(id));
    w_.body.end();
    w_.body.end();
    held_.insert(held_.end(), ids.begin(), ids.end());
  }

  bool is_held(std::uint32_t id) const { return std::find(held_.begin(), held_.end(), id) != held_.end(); }

  void begin_resident(const std::string& guard) {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int k = 0; k < {}; ++k)", s_.vectors_per_thread));
    w_.body.linef("const {} at = (k * {} + lane) * {};", w_.index(), s_.threads_per_row, vector_);
    w_.body.begin("if (" + guard + ")");
    positions();
  }

  bool is_full_pack(std::uint32_t id) const { return passes_.full[id] && !reduced_.empty() && w_.is_pack(id, inner_); }

  PassWork work_of(std::uint32_t pass) const {
    PassWork work = pass_work(fusion_, passes_, pass);
    columns_.add_roots(pass, work.roots);
    return work;
  }

  std::vector<std::uint32_t> ids_of(std::uint32_t pass) const {
    std::vector<bool> rows(fusion_.body.size());
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) rows[id] = !passes_.full[id];
    return needed(fusion_, work_of(pass).roots, rows);
  }

  /// Packs that the first pass or several passes read: they are loaded once a row.
  std::vector<std::uint32_t> repeated() const {
    std::vector<int> uses(fusion_.body.size(), 0);
    for (std::uint32_t pass = 0; pass < passes_.count; ++pass) {
      for (std::uint32_t id : ids_of(pass)) uses[id] += pass == 0 ? 2 : 1;
    }
    std::vector<std::uint32_t> again;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (uses[id] >= 2 && is_full_pack(id) && !is_held(id)) again.push_back(id);
    }
    return again;
  }

  void load_resident() {
    const std::string guard = "live && at < length";
    if (ring_.any()) {
      ring_.take([&] { begin_resident(guard); }, [&] { w_.body.end(), w_.body.end(); });
      held_.insert(held_.end(), ring_.ids().begin(), ring_.ids().end());
    }
    row_values(0);  // an indexed load needs its row's index first
    hold(repeated(), guard);
  }

  void positions() {
    if (reduced_.size() == 1) {
      w_.body.linef("const {} i{} = at;", w_.index(), inner_);
    } else {
      w_.decompose("at", reduced_);
    }
  }

  void begin_packs() {
    if (resident_) {
      begin_resident("live && at < length");
      return;
    }
    if (s_.unroll > 1) w_.body.linef("#pragma unroll {}", s_.unroll);
    const std::string from = split_ ? "low + " : "", to = split_ ? "high" : "length";
    w_.body.begin(fmt::format("for ({0} at = {1}({0})lane * {2}; live && at < {3}; at += {4})", w_.index(), from, vector_, to, s_.threads_per_row * vector_));
    positions();
  }

  void end_packs() {
    w_.body.end();
    if (resident_) w_.body.end();
  }

  void row_values(std::uint32_t pass) {
    std::vector<std::uint32_t> roots;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (!passes_.full[id] && !fusion_.body[id].folds_columns && !available_[id] && fusion_.body[id].kind != ExprKind::Reduce && passes_.pass[id] <= pass) roots.push_back(id);
    }
    for (std::uint32_t id : needed(fusion_, roots, available_)) {
      if (passes_.full[id] || fusion_.body[id].kind == ExprKind::Reduce) continue;
      w_.statement(id);
      available_[id] = true;
    }
  }

  /// Is every pack folded into the chain as it comes? Else each place of the packs has a chain of its own.
  bool is_chained(const Accumulator& state) const { return vector_ == 1 || w_.is_compensated(state); }

  /// More elements a thread than it may also have unpacked, or as results: the registers of that would cost the SM a block.
  bool holds_many() const {
    constexpr int kUnpacked = 16;
    return resident_ && s_.vectors_per_thread * vector_ > kUnpacked;
  }

  /// Makes the packs new to the compiler, which would else keep what the pass before made of them.
  void renew(const std::vector<std::uint32_t>& ids) {
    for (std::uint32_t id : ids) {
      if (is_held(id)) w_.body.linef("FXF_UNROLL for (int k = 0; k < {}; ++k) fxf_renew(x{}[k], {});", s_.vectors_per_thread, id, w_.params.number("zero", 0));
    }
  }

  void declare_parts(const Accumulator& state) {
    w_.body.linef("{} part{}[{}];", w_.accumulator_type(state), state.expr, vector_);
    w_.body.linef("FXF_UNROLL for (int e = 0; e < {}; ++e) part{}[e] = {};", vector_, state.expr, w_.accumulator_init(state));
  }

  bool needed_after(std::uint32_t pass, std::uint32_t id) const {
    for (std::uint32_t later = pass + 1; later < passes_.count; ++later) {
      const auto ids = ids_of(later);
      if (std::find(ids.begin(), ids.end(), id) != ids.end()) return true;
    }
    return false;
  }

  void loop(std::uint32_t pass) {
    const auto [states, outputs, roots] = work_of(pass);
    if (roots.empty()) return;
    const std::vector<std::uint32_t> ids = needed(fusion_, roots, available_);
    for (const Accumulator* state : states) {
      if (is_chained(*state)) w_.body.linef("{} acc{} = {};", w_.chain_type(*state), state->expr, w_.chain_init(*state));
      else declare_parts(*state);
    }
    std::vector<std::uint32_t> keeps;
    if (resident_ && pass + 1 < passes_.count && !holds_many()) {
      for (std::uint32_t id : ids) {
        const Expr& expr = fusion_.body[id];
        if (expr.kind == ExprKind::Compute && expr.row->cost_special > 0 && passes_.full[id] && needed_after(pass, id)) keeps.push_back(id);
      }
    }
    for (std::uint32_t id : keeps) w_.body.linef("{} keep{}[{}];", register_type(fusion_.body[id].dtype), id, s_.vectors_per_thread * vector_);
    if (pass > 0 && holds_many()) renew(ids);
    begin_packs();
    elements(pass, ids, states, outputs, keeps);
    end_packs();
    for (const Accumulator* state : states) {
      if (!is_chained(*state)) w_.body.linef("{0} acc{1} = fxf_fold_parts<{2}>(part{1}, fold{1});", w_.accumulator_type(*state), state->expr, vector_);
    }
    for (std::uint32_t id : keeps) {
      available_[id] = true;
      kept_.push_back(id);
    }
    if (!split_) fold_rows(states);
  }

  void elements(std::uint32_t pass, const std::vector<std::uint32_t>& ids, const std::vector<const Accumulator*>& states, const std::vector<std::size_t>& outputs, const std::vector<std::uint32_t>& keeps) {
    const auto along = [&](std::uint32_t id) { return !reduced_.empty() && ((fusion_.body[id].depends >> inner_) & 1) != 0; };
    const auto plain_value = w_.value_name;
    const auto plain_index = w_.index_name;
    w_.value_name = [this, plain_value](std::uint32_t id) {
      const bool kept = std::find(kept_.begin(), kept_.end(), id) != kept_.end();
      return kept ? fmt::format("keep{}[k * {} + e]", id, vector_) : plain_value(id);
    };
    for (std::uint32_t id : ids) {
      if (!along(id)) w_.statement(id);
    }
    for (std::uint32_t id : ids) {
      if (is_full_pack(id) && !is_held(id)) w_.body.linef("const auto x{} = {};", id, w_.pack_load(id));
    }
    for (std::size_t output : outputs) {
      if (w_.is_pack_output(output, inner_)) w_.body.linef("{} y{}[{}];", register_type(fusion_.outputs[output].meta.dtype), output, vector_);
    }
    for (const Accumulator* state : states) {
      if (w_.is_compensated(*state)) declare_parts(*state);
    }
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int e = 0; e < {}; ++e)", vector_));
    if (vector_ > 1) w_.index_name = [this, plain_index](std::size_t axis) { return axis == inner_ ? "(" + plain_index(axis) + " + e)" : plain_index(axis); };
    for (std::uint32_t id : ids) {
      if (!along(id)) continue;
      if (is_full_pack(id)) w_.body.linef("const {} v{} = fxf_get(x{}{}, e);", register_type(fusion_.body[id].dtype), id, id, is_held(id) ? "[k]" : "");
      else w_.statement(id);
    }
    for (std::uint32_t id : keeps) w_.body.linef("keep{0}[k * {1} + e] = v{0};", id, vector_);
    for (const Accumulator* state : states) {
      const bool direct = vector_ == 1 && !w_.is_compensated(*state);
      w_.body.line(w_.fold_element(*state, direct ? fmt::format("acc{}", state->expr) : fmt::format("part{}[e]", state->expr), reduced_));
    }
    columns_.fold(pass, reduced_);
    for (std::size_t output : outputs) {
      if (w_.is_pack_output(output, inner_)) w_.body.linef("y{}[e] = {};", output, w_.output_value(output));
      else w_.store(output);
    }
    w_.index_name = plain_index;
    w_.body.end();
    for (const Accumulator* state : states) {
      if (!w_.is_compensated(*state)) continue;
      const std::string folded = fmt::format("fxf_fold_parts<{0}>(part{1}, fold{1})", vector_, state->expr);
      w_.body.linef("acc{0} = {1}(acc{0}, {2});", state->expr, w_.chain_fold(*state), w_.chained(*state, folded));
    }
    for (std::size_t output : outputs) {
      if (w_.is_pack_output(output, inner_)) w_.body.linef("fxf_store({} + {}, y{});", w_.params.output(output), w_.store_address(output), output);
    }
    w_.value_name = plain_value;
  }

  /// Across the threads of a row: in a warp by shuffles, beyond it through shared memory with one barrier a pass.
  void across_threads(const std::vector<const Accumulator*>& states) {
    const int lanes = s_.threads_per_row;
    // Rounds of rows take turns at two places, so that one round's barrier parts the next round's writes from this one's reads.
    const std::string bank = columns_.any() ? fmt::format(", turn % 2 * {}", s_.threads / 32) : "";
    if (lanes > 32) {
      for (const Accumulator* state : states) {
        w_.body.linef("typedef {0} state{1};\nFXF_SHARED(state{1}, scratch{1}, {2});", w_.chain_type(*state), state->expr, std::max(s_.threads / 32, 1) * (columns_.any() ? 2 : 1));
        w_.body.linef("fxf_post_warp(acc{0}, scratch{0}, {1}{2});", state->expr, w_.chain_fold(*state), bank);
      }
      if (!states.empty()) w_.body.line("fxf_barrier();");
    }
    for (const Accumulator* state : states) {
      if (lanes > 32) w_.body.linef("acc{0} = fxf_fold_warps<{1}>(acc{0}, scratch{0}, {2}{3});", state->expr, lanes, w_.chain_fold(*state), bank);
      else if (lanes > 1) w_.body.linef("acc{0} = fxf_fold_lanes<{1}>(acc{0}, {2});", state->expr, lanes, w_.chain_fold(*state));
    }
  }

  void fold_rows(const std::vector<const Accumulator*>& states) {
    across_threads(states);
    for (const Accumulator* state : states) {
      for (std::uint32_t result : state->results) {
        const Expr& reduce = fusion_.body[result];
        w_.body.linef("const {} v{} = {};{}", register_type(reduce.dtype), result, w_.finished(*state, result, fmt::format("acc{}", state->expr)), comment_of(reduce));
        available_[result] = true;
      }
    }
  }

  void row_outputs() {
    row_values(passes_.count);
    bool any = false;
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) any = any || is_row_output(fusion_, passes_, i);
    if (!any) return;
    w_.body.begin("if (live && lane == 0)");
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) {
      if (is_row_output(fusion_, passes_, i)) w_.store(i);
    }
    w_.body.end();
  }

  void partials() {
    std::vector<const Accumulator*> states;
    for (const Accumulator& state : passes_.accumulators) states.push_back(&state);
    across_threads(states);
    for (std::size_t i = 0; i < states.size(); ++i) {
      w_.body.linef("if (live && lane == 0) fxf_put_partial(({}*)(workspace + {}) + row * split + slab, acc{});", w_.chain_type(*states[i]),
                    w_.params.number(fmt::format("partial{}", states[i]->expr), partial_offset(w_, i)), states[i]->expr);
    }
  }

  CudaWriter& w_;
  KernelSource& source_;
  const Fusion& fusion_;
  const Schedule& s_;
  const Passes& passes_;
  std::vector<std::size_t> reduced_;
  std::vector<bool> available_;
  std::vector<std::uint32_t> held_, kept_, early_;
  std::string blocks_;
  bool resident_, split_;
  ColumnFolds columns_;
  PackRing ring_;
  std::size_t inner_ = 0;
  int vector_ = 1;
};

}  // namespace

void emit_cuda_rows(CudaWriter& writer, KernelSource& source) { Rows(writer, source).run(); }

}  // namespace fxfuser::codegen
