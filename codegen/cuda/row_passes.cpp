#include "codegen/cuda/row_passes.h"

#include <algorithm>

#include "codegen/shifted_rows.h"

namespace fxfuser::codegen {

RowPasses::RowPasses(CudaWriter& writer, ColumnFolds& columns)
    : w(writer), fusion(writer.fusion), s(writer.schedule), passes(writer.passes), reduced(writer.reduced_axes()), available(fusion.body.size(), false), columns_(columns) {
  inner = reduced.empty() ? 0 : reduced.back();
  vector = reduced.empty() ? 1 : s.vector;
  if (s.shifted) w.row_length = "length";
  pack_source = [this](std::uint32_t id) { return w.pack_load(id); };
}

bool RowPasses::is_full_pack(std::uint32_t id) const { return passes.full[id] && !reduced.empty() && w.is_pack(id, inner); }

bool RowPasses::is_held(std::uint32_t id) const { return std::find(held_.begin(), held_.end(), id) != held_.end(); }

PassWork RowPasses::work_of(std::uint32_t pass) const {
  PassWork work = pass_work(fusion, passes, pass);
  columns_.add_roots(pass, work.roots);
  return work;
}

std::vector<std::uint32_t> RowPasses::ids_of(std::uint32_t pass) const {
  std::vector<bool> rows(fusion.body.size());
  for (std::uint32_t id = 0; id < fusion.body.size(); ++id) rows[id] = !passes.full[id];
  return needed(fusion, work_of(pass).roots, rows);
}

std::vector<std::uint32_t> RowPasses::repeated() const {
  std::vector<int> uses(fusion.body.size(), 0);
  for (std::uint32_t pass = 0; pass < passes.count; ++pass) {
    for (std::uint32_t id : ids_of(pass)) uses[id] += pass == 0 ? 2 : 1;
  }
  std::vector<std::uint32_t> again;
  for (std::uint32_t id = 0; id < fusion.body.size(); ++id) {
    if (uses[id] >= 2 && is_full_pack(id) && !is_held(id)) again.push_back(id);
  }
  return again;
}

void RowPasses::declare() {
  w.body.linef("const {} length = {};", w.index(), w.params.number("row_length", fusion.reduced_numel()));
  if (s.refills()) w.params.number("share", packs_of_peer(s, fusion.reduced_numel()));
  w.declare_folds(passes.accumulators);
}

void RowPasses::declare_shift() {
  if (!s.shifted) return;
  w.body.linef("const int shift = {};", w.shift());
  w.body.linef("const {} end = length + shift;", w.index());
}

std::string RowPasses::end() const { return s.shifted ? "end" : "length"; }

void RowPasses::hold(const std::vector<std::uint32_t>& ids, const std::string& guard) {
  if (ids.empty()) return;
  for (std::uint32_t id : ids) w.body.linef("{} x{}[{}];", w.pack_type(id), id, s.vectors_per_thread);
  begin_unrolled(guard);
  for (std::uint32_t id : ids) w.body.linef("x{}[k] = {};", id, pack_source(id));
  end_unrolled(guard);
  add_held(ids);
}

void RowPasses::add_held(const std::vector<std::uint32_t>& ids) { held_.insert(held_.end(), ids.begin(), ids.end()); }

// Where no pack is beyond the row, its guard stands around the loop, and the packs are worked on without a branch between them. That is
// for packs in shared memory: of loads from memory the compiler would hoist as many as it finds, weights too.
void RowPasses::begin_unrolled(const std::string& guard) {
  if (s.exact && !guard.empty()) w.body.begin("if (" + guard + ")");
  w.body.line("FXF_UNROLL");
  w.body.begin(fmt::format("for (int k = 0; k < {}; ++k)", s.vectors_per_thread));
  if (s.refills()) w.body.linef("const {} at = (peer * share + k * {} + lane) * {};", w.index(), s.threads_per_row, vector);
  else if (s.cluster > 1) w.body.linef("const {} at = ((k * {} + peer) * {} + lane) * {};", w.index(), s.cluster, s.threads_per_row, vector);
  else w.body.linef("const {} at = (k * {} + lane) * {};", w.index(), s.threads_per_row, vector);
  const std::string mine = s.refills() ? fmt::format("k * {} + lane < share && ", s.threads_per_row) : "";
  if (!s.exact) w.body.begin(fmt::format("if ({}{}{}at < {})", guard, guard.empty() ? "" : " && ", mine, end()));
  positions();
}

void RowPasses::end_unrolled(const std::string& guard) {
  w.body.end();
  if (!s.exact || !guard.empty()) w.body.end();
}

void RowPasses::positions() {
  if (reduced.size() == 1) {
    w.body.linef("const {} i{} = at{};", w.index(), inner, s.shifted ? " - shift" : "");
  } else {
    w.decompose("at", reduced);
  }
}

void RowPasses::begin_packs() {
  if (is_unrolled()) {
    begin_unrolled("live");
    return;
  }
  if (s.unroll > 1) w.body.linef("#pragma unroll {}", s.unroll);
  const std::string from = is_split() ? "low + " : "", to = is_split() ? "high" : end();
  w.body.begin(fmt::format("for ({0} at = {1}({0})lane * {2}; live && at < {3}; at += {4})", w.index(), from, vector, to, s.threads_per_row * vector));
  positions();
}

void RowPasses::end_packs() {
  if (is_unrolled()) end_unrolled("live");
  else w.body.end();
}

void RowPasses::row_values(std::uint32_t pass) {
  std::vector<std::uint32_t> roots;
  for (std::uint32_t id = 0; id < fusion.body.size(); ++id) {
    if (!passes.full[id] && !fusion.body[id].folds_columns && !available[id] && fusion.body[id].kind != ExprKind::Reduce && passes.pass[id] <= pass) roots.push_back(id);
  }
  for (std::uint32_t id : needed(fusion, roots, available)) {
    if (passes.full[id] || fusion.body[id].kind == ExprKind::Reduce) continue;
    w.statement(id);
    available[id] = true;
  }
}

/// Is every pack folded into the chain as it comes? Else each place of the packs has a chain of its own.
bool RowPasses::is_chained(const Accumulator& state) const { return vector == 1 || w.takes_packs(state); }

/// More elements a thread than it may also have unpacked, or as results: the registers of that would cost the SM a block.
bool RowPasses::holds_many() const {
  constexpr int kUnpacked = 16;
  return is_unrolled() && s.vectors_per_thread * vector > kUnpacked;
}

/// Makes the packs new to the compiler, which would else keep what the pass before made of them.
void RowPasses::renew(const std::vector<std::uint32_t>& ids) {
  for (std::uint32_t id : ids) {
    if (is_held(id)) w.body.linef("FXF_UNROLL for (int k = 0; k < {}; ++k) fxf_renew(x{}[k], {});", s.vectors_per_thread, id, w.params.number("zero", 0));
  }
}

void RowPasses::declare_parts(const Accumulator& state) {
  w.body.linef("{} part{}[{}];", w.accumulator_type(state), state.expr, vector);
  w.body.linef("FXF_UNROLL for (int e = 0; e < {}; ++e) part{}[e] = {};", vector, state.expr, w.accumulator_init(state));
}

bool RowPasses::needed_after(std::uint32_t pass, std::uint32_t id) const {
  for (std::uint32_t later = pass + 1; later < passes.count; ++later) {
    const auto ids = ids_of(later);
    if (std::find(ids.begin(), ids.end(), id) != ids.end()) return true;
  }
  return false;
}

/// Costly values that a later pass would make again.
std::vector<std::uint32_t> RowPasses::kept_from(std::uint32_t pass, const std::vector<std::uint32_t>& ids) const {
  std::vector<std::uint32_t> keeps;
  if (!is_unrolled() || pass + 1 >= passes.count || holds_many()) return keeps;
  for (std::uint32_t id : ids) {
    const Expr& expr = fusion.body[id];
    if (expr.kind == ExprKind::Compute && expr.row->cost_special > 0 && passes.full[id] && needed_after(pass, id)) keeps.push_back(id);
  }
  return keeps;
}

void RowPasses::loop(std::uint32_t pass, const PassWork& work, bool keeping, bool declared) {
  const std::vector<std::uint32_t> ids = needed(fusion, work.roots, available);
  const auto begin_of = [&](const Accumulator& state) { return declared ? fmt::format("acc{}", state.expr) : fmt::format("{} acc{}", w.chain_type(state), state.expr); };
  for (const Accumulator* state : work.states) {
    if (!is_chained(*state)) declare_parts(*state);
    else if (!declared) w.body.linef("{} = {};", begin_of(*state), w.chain_init(*state));
  }
  const std::vector<std::uint32_t> keeps = keeping ? kept_from(pass, ids) : std::vector<std::uint32_t>();
  for (std::uint32_t id : keeps) w.body.linef("{} keep{}[{}];", register_type(fusion.body[id].dtype), id, s.vectors_per_thread * vector);
  if (pass > 0 && holds_many()) renew(ids);
  begin_packs();
  elements(pass, ids, work, keeps);
  if (pack_done) pack_done();
  end_packs();
  for (const Accumulator* state : work.states) {
    if (!is_chained(*state)) w.body.linef("{0} = fxf_fold_parts<{1}>(part{2}, fold{2});", begin_of(*state), vector, state->expr);
  }
  for (std::uint32_t id : keeps) {
    available[id] = true;
    kept_.push_back(id);
  }
}

void RowPasses::all_passes(const std::function<void(const std::vector<const Accumulator*>&)>& folded) {
  if (is_unrolled()) {
    row_values(0);  // an indexed load needs its row's index first
    hold(repeated(), "live");
  }
  for (std::uint32_t pass = 0; pass < passes.count; ++pass) {
    row_values(pass);
    const PassWork work = work_of(pass);
    if (work.roots.empty()) continue;
    loop(pass, work, true);
    folded(work.states);
  }
}

void RowPasses::name_results(const Accumulator& state, const std::string& folded) {
  for (std::uint32_t result : state.results) {
    const Expr& reduce = fusion.body[result];
    w.body.linef("const {} v{} = {};{}", register_type(reduce.dtype), result, w.finished(state, result, folded), comment_of(reduce));
    available[result] = true;
  }
}

std::vector<std::uint32_t> RowPasses::row_output_roots() const {
  std::vector<std::uint32_t> roots;
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (is_row_output(fusion, passes, i)) roots.push_back(fusion.outputs[i].expr);
  }
  return roots;
}

void RowPasses::store_row_outputs(const std::string& guard) {
  if (row_output_roots().empty()) return;
  w.body.begin("if (" + guard + ")");
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (is_row_output(fusion, passes, i)) w.store(i);
  }
  w.body.end();
}

void RowPasses::elements(std::uint32_t pass, const std::vector<std::uint32_t>& ids, const PassWork& work, const std::vector<std::uint32_t>& keeps) {
  const auto along = [&](std::uint32_t id) { return !reduced.empty() && ((fusion.body[id].depends >> inner) & 1) != 0; };
  const auto plain_value = w.value_name;
  w.value_name = [this, plain_value](std::uint32_t id) {
    const bool kept = std::find(kept_.begin(), kept_.end(), id) != kept_.end();
    return kept ? fmt::format("keep{}[k * {} + e]", id, vector) : plain_value(id);
  };
  for (std::uint32_t id : ids) {
    if (!along(id)) w.statement(id);
  }
  for (std::uint32_t id : ids) {
    if (is_full_pack(id) && !is_held(id)) w.body.linef("const auto x{} = {};", id, pack_source(id));
  }
  w.declare_packs(work.outputs, inner);
  for (const Accumulator* state : work.states) {
    if (w.takes_packs(*state)) declare_parts(*state);
  }
  w.body.line("FXF_UNROLL");
  w.body.begin(fmt::format("for (int e = 0; e < {}; ++e)", vector));
  if (vector > 1) w.begin_pack(inner);
  if (s.shifted) {
    w.body.linef("const bool inside = fxf_inside({}, length);", w.index_name(inner));
    w.inside = "inside";
  }
  for (std::uint32_t id : ids) {
    if (!along(id)) continue;
    if (is_full_pack(id)) w.body.linef("const {} v{} = fxf_get(x{}{}, e);", register_type(fusion.body[id].dtype), id, id, is_held(id) ? "[k]" : "");
    else w.statement(id);
  }
  for (std::uint32_t id : keeps) w.body.linef("keep{0}[k * {1} + e] = v{0};", id, vector);
  for (const Accumulator* state : work.states) {
    const bool direct = vector == 1 && !w.takes_packs(*state);
    w.body.line((s.shifted ? "if (inside) " : "") + w.fold_element(*state, direct ? fmt::format("acc{}", state->expr) : fmt::format("part{}[e]", state->expr), reduced));
  }
  columns_.fold(pass, reduced);
  w.put_elements(work.outputs, inner);
  w.inside.clear();
  if (vector > 1) w.end_pack();
  w.body.end();
  for (const Accumulator* state : work.states) {
    if (w.takes_packs(*state)) w.body.line(w.take_pack(*state, vector));
  }
  w.store_packs(work.outputs, inner);
  w.value_name = plain_value;
}

}  // namespace fxfuser::codegen
