// Rows that teams walk over: a team is a block, or a cluster of blocks that share a row. Packs of rows to come are on their way to
// shared memory; columns are folded beside the rows.
//
// In each turn a team takes in one row a group of threads. Where more than a warp shares a row, the passes over it are skewed: a turn is
// the first pass over its row, the second over the row of the turn before, and so on, with one meeting of all threads a turn. What was
// posted in the last turn is awaited after this turn's first pass, which needs none of it, so that threads seldom wait. What a later pass
// needs of a row (its folds, its row values) is carried from turn to turn.
//
// A row that fills the shared memory of its blocks leaves none for rows to come: its passes follow each other in one turn, and the last
// of them fetches the next row into the places that it has worked on. What a turn waits for, other blocks of the SM fill.

#include <algorithm>

#include "codegen/cuda/pack_ring.h"
#include "codegen/cuda/row_passes.h"
#include "partitioner/ir/error.h"

namespace fxfuser::codegen {
namespace {

class RowPipeline {
 public:
  RowPipeline(CudaWriter& writer, KernelSource& source)
      : w_(writer),
        source_(source),
        fusion_(writer.fusion),
        s_(writer.schedule),
        passes_(writer.passes),
        columns_(writer),
        row_(writer, columns_),
        ring_(writer),
        skewed_(!s_.refills() && !passes_.accumulators.empty() && s_.threads_per_row * s_.cluster > 32) {
    FXF_ASSERT(s_.rows_per_block == 1 || !skewed_, "blocks of {} rows cannot be skewed", s_.rows_per_block);
    scopes_ = skewed_ ? passes_.count : 1;
    for (const Accumulator& state : passes_.accumulators) {
      if (skewed_) scopes_ = std::max(scopes_, state.pass + 2);
    }
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      const Expr& expr = fusion_.body[id];
      if (expr.kind == ExprKind::Load && !passes_.full[id] && expr.depends != 0 && expr.indirect.empty() && expr.bounds.empty()) early_.push_back(id);
    }
  }

  void run() {
    w_.body.linef("const int lane = fxf_thread() % {};", s_.threads_per_row);
    if (s_.cluster > 1) w_.body.linef("const int team = fxf_block() / {0}, peer = fxf_block() % {0};", s_.cluster);
    else w_.body.line("const int team = fxf_block();");
    row_.declare();
    columns_.declare();
    if (s_.steady) declare_steady_shift();
    hold_alike();
    const std::string teams = w_.params.number("teams", s_.teams);
    const std::int64_t row_blocks = (fusion_.kept_numel() + s_.rows_per_block - 1) / s_.rows_per_block;
    w_.body.linef("const int turns = team < {0} ? (int)(({0} - team + {1} - 1) / {1}) + {2} : 0;", w_.params.number("row_blocks", row_blocks), teams, scopes_ - 1);
    if (s_.stages > 0) set_ring();
    if (ring_.any()) ring_.begin([this](const std::string& which, const std::function<void()>& fetches) { fetch(which, fetches); });
    declare_carried();
    if (skewed_ || s_.refills()) declare_posts();
    w_.body.begin("for (int turn = 0; turn < turns; ++turn)");
    if (ring_.any()) ring_.advance([this](const std::string& which, const std::function<void()>& fetches) { fetch(which, fetches); });
    for (std::uint32_t id : early_) w_.body.linef("const {0} row{1} = next{1};", register_type(fusion_.body[id].dtype), id);
    load_early("(turn + 1)");
    skewed_ ? skewed_turn() : s_.refills() ? refilled_turn() : whole_turn();
    columns_.settle("turn");
    w_.body.end();
    if (skewed_ && s_.cluster > 1) await_round("turns > 0", "(turns - 1)");
    if (s_.cluster > 1) w_.body.linef("fxf_close_exchange<{}>();", s_.cluster);
    if (columns_.any()) columns_.store();
    w_.close_entry(source_, "", static_cast<std::int64_t>(s_.teams) * s_.cluster, s_.threads);
    source_.launches.back().shared_bytes = static_cast<std::uint32_t>(ring_.shared_bytes());
    source_.launches.back().cluster = static_cast<std::uint32_t>(s_.cluster);
  }

 private:
  /// A value that a scope has and later ones need: of the row that the scope worked on.
  struct Carried {
    std::uint32_t id, origin, last;
  };

  // ---- the rows of a turn ----

  /// Declares the row of a turn, live where there is one, and the indices of its place.
  void place_row(const std::string& turn) {
    w_.body.linef("const {0} row = (({0}){1} * {2} + team) * {3} + fxf_thread() / {4};", w_.index(), turn, w_.params.number("teams", s_.teams), s_.rows_per_block, s_.threads_per_row);
    w_.body.linef("const bool live = {} >= 0 && row < {};", turn, w_.params.number("rows", fusion_.kept_numel()));
    const std::vector<std::size_t> kept = w_.kept_axes();
    if (!kept.empty()) {
      w_.body.linef("const {} here = live ? row : 0;", w_.index());
      w_.decompose("here", kept);
    }
    if (!s_.steady) row_.declare_shift();
  }

  /// That of the team's first row is all its rows' shift.
  void declare_steady_shift() {
    w_.body.linef("const {0} first = ({0})team * {1} + fxf_thread() / {2};", w_.index(), s_.rows_per_block, s_.threads_per_row);
    const auto name = w_.index_name;
    w_.index_name = [](std::size_t) { return std::string("first"); };
    row_.declare_shift();
    w_.index_name = name;
  }

  /// What every row reads alike is in registers while the team walks over the rows.
  void hold_alike() {
    if ((s_.shifted && !s_.steady) || s_.refills()) return;
    std::vector<std::uint32_t> alike;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (row_.is_full_pack(id) && fusion_.body[id].indirect.empty() && (fusion_.body[id].depends & ~fusion_.reduced_mask()) == 0) alike.push_back(id);
    }
    row_.hold(alike, "");
  }

  void set_ring() {
    std::vector<std::uint32_t> ids;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (row_.is_full_pack(id) && !row_.is_held(id) && fusion_.body[id].indirect.empty() && fusion_.body[id].bounds.empty() && !w_.is_across(id)) ids.push_back(id);
    }
    ring_.set(std::move(ids), s_.refills() ? 1 : s_.stages - (skewed_ ? static_cast<int>(passes_.count) : 1));
    row_.pack_source = [this](std::uint32_t id) { return ring_.has(id) ? ring_.pack(id, "slot") : w_.pack_load(id); };
  }

  void fetch(const std::string& turn, const std::function<void()>& fetches) {
    place_row(turn);
    row_.begin_unrolled("live");
    fetches();
    row_.end_unrolled("live");
  }

  /// Row values that are loaded a turn ahead.
  void load_early(const std::string& turn) {
    if (early_.empty()) return;
    w_.body.begin("");
    place_row(turn);
    w_.body.begin("if (live)");
    for (std::uint32_t id : early_) w_.body.linef("next{} = {};", id, w_.right_side(id));
    w_.body.end();
    w_.body.end();
  }

  void declare_carried() {
    if (skewed_) find_carried();
    for (std::uint32_t id : early_) w_.body.linef("{0} next{1} = ({0})0;", register_type(fusion_.body[id].dtype), id);
    load_early("0");
    for (const Carried& value : carried_) {
      w_.body.linef("{0} past{1}[{2}];\nFXF_UNROLL for (int t = 0; t < {2}; ++t) past{1}[t] = ({0})0;", register_type(fusion_.body[value.id].dtype), value.id, value.last - value.origin);
    }
  }

  // ---- a turn whose passes are all over one row ----

  void whole_turn() {
    place_row("turn");
    if (ring_.any()) w_.body.linef("const int slot = turn % {};", s_.stages);
    name_early();
    row_.all_passes([&](const std::vector<const Accumulator*>& states) {
      for (const Accumulator* state : states) {
        if (s_.threads_per_row > 1) w_.body.linef("acc{0} = fxf_fold_lanes<{1}>(acc{0}, {2});", state->expr, s_.threads_per_row, w_.chain_fold(*state));
        row_.name_results(*state, fmt::format("acc{}", state->expr));
      }
    });
    row_.row_values(passes_.count);
    store_row_outputs();
  }

  // ---- a turn whose row is in shared memory until its last pass ----

  void refilled_turn() {
    place_row("turn");
    name_early();
    std::uint32_t last = 0, meetings = 0, met = 0;
    for (std::uint32_t pass = 0; pass < passes_.count; ++pass) {
      const PassWork work = row_.work_of(pass);
      if (!work.roots.empty()) last = pass;
      if (!work.states.empty()) ++meetings;
    }
    for (std::uint32_t pass = 0; pass <= last; ++pass) {
      row_.row_values(pass);
      const PassWork work = row_.work_of(pass);
      if (work.roots.empty()) continue;
      if (pass == last) row_.pack_done = [this] { refill(); };
      row_.loop(pass, work, false);
      if (pass == last) w_.body.line("fxf_commit_fetches();");
      if (!work.states.empty()) meet(work.states, meetings, met++);
    }
    row_.row_values(passes_.count);
    store_row_outputs();
  }

  void refill() {
    w_.body.begin("");
    place_row("(turn + 1)");
    w_.body.begin("if (live)");
    ring_.refill();
    w_.body.end();
    w_.body.end();
  }

  /// Meeting `met` of the `meetings` of a turn.
  void meet(const std::vector<const Accumulator*>& states, std::uint32_t meetings, std::uint32_t met) {
    const std::string round = fmt::format("round{}", met);
    w_.body.linef("const int {} = turn * {} + {};", round, meetings, met);
    post(states, round);
    await_round("", round);
    for (const Accumulator* state : states) {
      w_.body.linef("acc{0} = fxf_fold_posted<{1}>(scratch{0}, {2}, {3} % 2);", state->expr, posted(), w_.chain_fold(*state), round);
      row_.name_results(*state, fmt::format("acc{}", state->expr));
    }
  }

  void name_early() {
    for (std::uint32_t id : early_) {
      w_.body.linef("const {0} v{1} = row{1};", register_type(fusion_.body[id].dtype), id);
      row_.available[id] = true;
    }
  }

  void store_row_outputs() { row_.store_row_outputs(s_.cluster > 1 ? "live && lane == 0 && peer == 0" : "live && lane == 0"); }

  // ---- a turn of skewed passes ----

  void skewed_turn() {
    for (const Accumulator& state : passes_.accumulators) w_.body.linef("{} acc{} = {};", w_.chain_type(state), state.expr, w_.chain_init(state));
    for (const Carried& value : carried_) {
      if (fusion_.body[value.id].kind == ExprKind::Reduce) w_.body.linef("{} row{};", register_type(fusion_.body[value.id].dtype), value.id);
    }
    scope(0);
    await_round("turn > 0", "(turn - 1)");
    for (std::uint32_t at = scopes_; at-- > 1;) scope(at);
    std::vector<const Accumulator*> states;
    for (const Accumulator& state : passes_.accumulators) states.push_back(&state);
    post(states, "turn");
    for (const Carried& value : carried_) {
      for (std::uint32_t t = value.last - value.origin; t-- > 1;) w_.body.linef("past{0}[{1}] = past{0}[{2}];", value.id, t, t - 1);
      w_.body.linef("past{0}[0] = row{0};", value.id);
    }
  }

  /// Values a fold has of a row before the last fold over them. Turns take turns at two places for them.
  int posted() const { return s_.cluster * s_.threads / 32; }

  /// A round's values to all peers; rounds take turns at the two places.
  void post(const std::vector<const Accumulator*>& states, const std::string& round) {
    if (s_.cluster > 1) {
      std::string bytes;
      for (const Accumulator* state : states) bytes += fmt::format("{}(int)sizeof(state{})", bytes.empty() ? "" : " + ", state->expr);
      w_.body.linef("if (fxf_thread() == 0) fxf_expect_posts<{}>(exchange, {} % 2, {} * ({}));", s_.cluster, round, posted(), bytes);
    }
    for (const Accumulator* state : states) {
      w_.body.linef("fxf_post_to_peers<{0}, {1}>(acc{2}, scratch{2}, exchange, {3}, {5} % 2, {4});", s_.cluster, s_.threads / 32, state->expr, w_.chain_fold(*state), s_.cluster > 1 ? "peer" : "0", round);
    }
  }

  /// The first turn of skewed ones finds what stands for rows before the first.
  void declare_posts() {
    for (const Accumulator& state : passes_.accumulators) {
      w_.body.linef("typedef fxf_posted<{0} > state{1};\nFXF_SHARED(state{1}, scratch{1}, {2});", w_.chain_type(state), state.expr, 2 * posted());
      if (skewed_) w_.body.linef("if (fxf_thread() < {0}) FXF_PLACE(scratch{1}, {0} + fxf_thread(), (state{1}{{{2}}}));", posted(), state.expr, w_.chain_init(state));
    }
    w_.body.line("FXF_EXCHANGE(exchange);");
    w_.body.linef("fxf_open_exchange<{}>(exchange);", s_.cluster);
  }

  /// What was posted in a turn can be taken afterwards. A block alone has a barrier in every turn.
  void await_round(const std::string& guard, const std::string& turn) {
    w_.body.linef("{}fxf_await_posts<{}>(exchange, {} % 2, {} / 2 % 2);", s_.cluster > 1 && !guard.empty() ? "if (" + guard + ") " : "", s_.cluster, turn, turn);
  }

  /// One pass over the row that came in `pass` turns ago.
  void scope(std::uint32_t pass) {
    w_.body.begin("");
    place_row(pass == 0 ? "turn" : fmt::format("(turn - {})", pass));
    if (ring_.any()) w_.body.linef("const int slot = {} % {};", pass == 0 ? "turn" : fmt::format("(turn + {})", s_.stages - static_cast<int>(pass)), s_.stages);
    row_.available.assign(fusion_.body.size(), false);
    if (pass == 0) {
      name_early();
    } else {
      take_folds(pass);
      for (const Carried& value : carried_) {
        if (value.origin >= pass || value.last < pass) continue;
        w_.body.linef("const {} v{} = past{}[{}];", register_type(fusion_.body[value.id].dtype), value.id, value.id, pass - value.origin - 1);
        row_.available[value.id] = true;
      }
    }
    for (std::uint32_t id : row_ids(pass)) {
      w_.statement(id);
      row_.available[id] = true;
    }
    if (pass < passes_.count) {
      const PassWork work = row_.work_of(pass);
      if (!work.roots.empty()) row_.loop(pass, work, false, true);
    }
    if (pass + 1 == scopes_) store_row_outputs();
    w_.body.end();
  }

  /// The folds of the pass before, which were posted in the turn before.
  void take_folds(std::uint32_t pass) {
    for (const Accumulator& state : passes_.accumulators) {
      if (state.pass + 1 != pass) continue;
      w_.body.linef("const auto acc{0} = fxf_fold_posted<{1}>(scratch{0}, {2}, (turn + 1) % 2);", state.expr, posted(), w_.chain_fold(state));
      row_.name_results(state, fmt::format("acc{}", state.expr));
      for (std::uint32_t result : state.results) {
        if (std::any_of(carried_.begin(), carried_.end(), [&](const Carried& value) { return value.id == result; })) w_.body.linef("row{0} = v{0};", result);
      }
    }
  }

  // ---- what the scopes need of each other ----

  /// Not made where they are needed, but had from a fold or from memory a turn ahead.
  bool is_source(std::uint32_t id) const {
    return (fusion_.body[id].kind == ExprKind::Reduce && !fusion_.body[id].folds_columns) || std::find(early_.begin(), early_.end(), id) != early_.end();
  }

  std::vector<std::uint32_t> roots_of(std::uint32_t pass) const {
    std::vector<std::uint32_t> roots = pass < passes_.count ? row_.work_of(pass).roots : std::vector<std::uint32_t>();
    if (pass + 1 == scopes_) {
      const std::vector<std::uint32_t> outputs = row_.row_output_roots();
      roots.insert(roots.end(), outputs.begin(), outputs.end());
    }
    return roots;
  }

  std::vector<std::uint32_t> needed_in(std::uint32_t pass) const {
    std::vector<bool> sources(fusion_.body.size());
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) sources[id] = is_source(id);
    return needed(fusion_, roots_of(pass), sources);
  }

  /// Row values that a pass needs and makes from its sources.
  std::vector<std::uint32_t> row_ids(std::uint32_t pass) const {
    std::vector<std::uint32_t> ids = needed_in(pass);
    std::erase_if(ids, [&](std::uint32_t id) { return passes_.full[id] || fusion_.body[id].folds_columns; });
    return ids;
  }

  void find_carried() {
    std::vector<std::uint32_t> last(fusion_.body.size(), 0);
    for (std::uint32_t pass = 0; pass < scopes_; ++pass) {
      const auto use = [&](std::uint32_t id) {
        if (is_source(id)) last[id] = pass;
      };
      for (std::uint32_t root : roots_of(pass)) use(root);
      for (std::uint32_t id : needed_in(pass)) {
        for (std::uint32_t operand : fusion_.body[id].operands) use(operand);
        for (const Indirect& term : fusion_.body[id].indirect) use(term.expr);
      }
    }
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (!is_source(id)) continue;
      const std::uint32_t origin = fusion_.body[id].kind == ExprKind::Reduce ? passes_.pass[id] + 1 : 0;
      if (last[id] > origin) carried_.push_back({id, origin, last[id]});
    }
  }

  CudaWriter& w_;
  KernelSource& source_;
  const Fusion& fusion_;
  const Schedule& s_;
  const Passes& passes_;
  ColumnFolds columns_;
  RowPasses row_;
  PackRing ring_;
  bool skewed_;
  std::uint32_t scopes_ = 1;
  std::vector<std::uint32_t> early_;
  std::vector<Carried> carried_;
};

}  // namespace

void emit_cuda_row_pipeline(CudaWriter& writer, KernelSource& source) { RowPipeline(writer, source).run(); }

}  // namespace fxfuser::codegen
