#include "codegen/cuda/column_folds.h"

namespace fxfuser::codegen {
namespace {

constexpr int kGathered = 4;  // values of a column that are added as they come, before what that lost is kept
constexpr int kAcross = 16, kDeep = 32, kUnroll = 8;  // the second stage: neighbouring columns, partials at once, loads in flight

std::int64_t partial_count(const CudaWriter& w) { return static_cast<std::int64_t>(w.schedule.slabs) * w.schedule.rows_per_block; }

std::int64_t offset_of(const CudaWriter& w, std::size_t state) { return static_cast<std::int64_t>(state) * partial_count(w) * w.fusion.reduced_numel() * 8; }

std::string base_of(CudaWriter& w, std::size_t state) {
  const Accumulator& columns = w.passes.columns[state];
  return fmt::format("({}*)(workspace + {})", w.accumulator_type(columns), w.params.number(fmt::format("columns{}", columns.expr), offset_of(w, state)));
}

}  // namespace

void ColumnFolds::add_roots(std::uint32_t pass, std::vector<std::uint32_t>& roots) const {
  for (const Accumulator& state : w_.passes.columns) {
    if (state.pass == pass) roots.push_back(w_.fusion.body[state.expr].operands[0]);
  }
}

void ColumnFolds::declare() {
  const int places = w_.schedule.vectors_per_thread * w_.schedule.vector;
  for (const Accumulator& state : w_.passes.columns) {
    w_.body.linef("{} column{}[{}];", gathers(state) ? w_.chain_type(state) : w_.accumulator_type(state), state.expr, places);
    w_.body.linef("FXF_UNROLL for (int c = 0; c < {}; ++c) column{}[c] = {};", places, state.expr, gathers(state) ? w_.chain_init(state) : w_.accumulator_init(state));
  }
}

bool ColumnFolds::gathers(const Accumulator& state) const { return w_.schedule.compensated && w_.is_compensated(state); }

void ColumnFolds::fold(std::uint32_t pass, const std::vector<std::size_t>& reduced) {
  for (const Accumulator& state : w_.passes.columns) {
    if (state.pass != pass) continue;
    w_.body.line(w_.fold_element(state, fmt::format("column{}[k * {} + e]{}", state.expr, w_.schedule.vector, gathers(state) ? ".lost" : ""), reduced));
  }
}

void ColumnFolds::settle(const std::string& turn) {
  std::vector<std::uint32_t> gathered;
  for (const Accumulator& state : w_.passes.columns) {
    if (gathers(state)) gathered.push_back(state.expr);
  }
  if (gathered.empty()) return;
  w_.body.begin(fmt::format("if ({0} % {1} == {1} - 1)", turn, kGathered));
  for (std::uint32_t id : gathered) w_.body.linef("FXF_UNROLL for (int c = 0; c < {0}; ++c) column{1}[c] = fxf_settle(column{1}[c]);", w_.schedule.vectors_per_thread * w_.schedule.vector, id);
  w_.body.end();
}

void ColumnFolds::store() {
  const Schedule& s = w_.schedule;
  w_.body.linef("const {0} partial = ({0})team * {1} + fxf_thread() / {2};", w_.index(), s.rows_per_block, s.threads_per_row);
  w_.body.line("FXF_UNROLL");
  w_.body.begin(fmt::format("for (int c = 0; c < {}; ++c)", s.vectors_per_thread * s.vector));
  const std::string lane = s.cluster > 1 ? fmt::format("(c / {} * {} + peer) * {} + lane", s.vector, s.cluster, s.threads_per_row) : fmt::format("c / {} * {} + lane", s.vector, s.threads_per_row);
  w_.body.linef("const {} at = ({}) * {} + c % {}{};", w_.index(), lane, s.vector, s.vector, s.shifted ? " - shift" : "");
  w_.body.begin(s.shifted ? "if (fxf_inside(at, length))" : "if (at < length)");
  for (std::size_t i = 0; i < w_.passes.columns.size(); ++i) {
    const Accumulator& state = w_.passes.columns[i];
    const std::string column = fmt::format("column{}[c]", state.expr);
    w_.body.linef("fxf_put_partial({} + partial * length + at, {});", base_of(w_, i), gathers(state) ? column + ".value + " + column + ".lost" : column);
  }
  w_.body.end();
  w_.body.end();
}

std::int64_t column_bytes(const CudaWriter& writer) { return offset_of(writer, writer.passes.columns.size()); }

void emit_cuda_column_finish(CudaWriter& w, KernelSource& source) {
  const Fusion& fusion = w.fusion;
  w.value_name = [](std::uint32_t id) { return "v" + std::to_string(id); };
  w.body.linef("const int lane = fxf_thread() % {0}, deep = fxf_thread() / {0};", kAcross);
  w.body.linef("const {} length = {};", w.index(), w.params.number("row_length", fusion.reduced_numel()));
  w.body.linef("const {0} at = ({0})fxf_block() * {1} + lane;", w.index(), kAcross);
  w.body.line("const bool live = at < length;");
  const std::string partials = w.params.number("partials", partial_count(w));
  w.declare_folds(w.passes.columns);
  for (std::size_t i = 0; i < w.passes.columns.size(); ++i) {
    const Accumulator& state = w.passes.columns[i];
    const std::string fold = w.chain_fold(state);
    w.body.linef("{} acc{} = {};", w.chain_type(state), state.expr, w.chain_init(state));
    w.body.linef("#pragma unroll {}", kUnroll);
    w.body.linef("for (int slab = deep; live && slab < {0}; slab += {1}) acc{2} = {3}(acc{2}, {4});", partials, kDeep, state.expr, fold,
                 w.chained(state, fmt::format("fxf_get_fresh({} + slab * length + at)", base_of(w, i))));
    w.body.linef("typedef {0} state{1};\nFXF_SHARED(state{1}, scratch{1}, {2});", w.chain_type(state), state.expr, kAcross * kDeep);
    w.body.linef("FXF_PLACE(scratch{0}, deep * {1} + lane, acc{0});", state.expr, kAcross);
  }
  w.body.line("fxf_barrier();");
  w.body.begin("if (live && deep == 0)");
  w.decompose("at", w.reduced_axes());
  std::vector<bool> available(fusion.body.size(), false);
  for (const Accumulator& state : w.passes.columns) {
    const std::string folded = fmt::format("fxf_fold_column<{0}>(scratch{1}, lane, {2}, {3})", kDeep, state.expr, kAcross, w.chain_fold(state));
    w.body.linef("const {} v{} = {};{}", register_type(fusion.body[state.expr].dtype), state.expr, w.finished(state, state.expr, folded), comment_of(fusion.body[state.expr]));
    available[state.expr] = true;
  }
  std::vector<std::uint32_t> roots;
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (is_column_output(fusion, i)) roots.push_back(fusion.outputs[i].expr);
  }
  for (std::uint32_t id : needed(fusion, roots, available)) w.statement(id);
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (is_column_output(fusion, i)) w.store(i);
  }
  w.body.end();
  w.close_entry(source, "_columns", (fusion.reduced_numel() + kAcross - 1) / kAcross, kAcross * kDeep);
}

}  // namespace fxfuser::codegen
