#include "codegen/cuda/cuda_writer.h"

#include <algorithm>

#include "codegen/narrow_math.h"
#include "codegen/shifted_rows.h"
#include "partitioner/ir/error.h"

namespace fxfuser::codegen {
namespace {

std::string both(const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + " && " + b; }

}  // namespace

CudaWriter::CudaWriter(const Fusion& f, const Schedule& s, bool workspace)
    : params(f, Target::Cuda, s.index_bits, workspace), fusion(f), schedule(s), passes(plan_passes(f, s.online)), narrow_(narrow_values(f)) {
  value_name = [](std::uint32_t id) { return "v" + std::to_string(id); };
  index_name = [](std::size_t axis) { return "i" + std::to_string(axis); };
}

std::vector<std::size_t> CudaWriter::kept_axes() const {
  std::vector<std::size_t> out;
  for (std::size_t axis = 0; axis < fusion.axes.size(); ++axis) {
    if (!fusion.axes[axis].reduced) out.push_back(axis);
  }
  return out;
}

std::vector<std::size_t> CudaWriter::reduced_axes() const {
  std::vector<std::size_t> out;
  for (std::size_t axis = 0; axis < fusion.axes.size(); ++axis) {
    if (fusion.axes[axis].reduced) out.push_back(axis);
  }
  return out;
}

std::string CudaWriter::product(const std::vector<std::size_t>& axes) {
  std::string text;
  for (std::size_t axis : axes) text += (text.empty() ? "" : " * ") + params.size(axis);
  return text.empty() ? "1" : text;
}

void CudaWriter::decompose(const std::string& linear, const std::vector<std::size_t>& axes) {
  std::string rest = linear;
  for (std::size_t at = axes.size(); at-- > 0;) {
    const std::string name = index_name(axes[at]);
    if (at == 0) {
      body.linef("const {} {} = {};", index(), name, rest);
      return;
    }
    const std::string size = params.size(axes[at]);
    body.linef("const {} {} = {} % {};", index(), name, rest, size);
    const std::string next = "rest" + std::to_string(axes[at]);
    body.linef("const {} {} = {} / {};", index(), next, rest, size);
    rest = next;
  }
}

bool CudaWriter::is_pack(std::uint32_t id, std::size_t axis) const {
  const Expr& expr = fusion.body[id];
  if (expr.kind != ExprKind::Load || schedule.vector <= 1 || axis >= expr.form.coeff.size() || expr.form.coeff[axis] != 1) return false;
  if (expr.input >= schedule.vector_input.size() || !schedule.vector_input[expr.input]) return false;
  for (const Indirect& term : expr.indirect) {
    if (((fusion.body[term.expr].depends >> axis) & 1) != 0) return false;
  }
  return true;
}

std::string CudaWriter::pack_type(std::uint32_t id) const { return pack_type_of(id, schedule.vector); }

std::string CudaWriter::pack_type_of(std::uint32_t id, int count) const {
  return fmt::format("fxf_pack<{}, {}>", storage_type(fusion.inputs[fusion.body[id].input].meta.dtype), count);
}

std::string CudaWriter::pack_load(std::uint32_t id) {
  const std::string from = params.input(fusion.body[id].input), address = load_address(id), guard = load_guard(id);
  std::string text = fmt::format("fxf_load<{}>({} + {})", schedule.vector, from, address);
  if (schedule.shifted) text = fmt::format("fxf_load_{}<{}>({}, {}, {})", is_across(id) ? "across" : "within", schedule.vector, from, address, load_end_name(id));
  return guard.empty() ? text : guard + " ? " + text + " : " + pack_type(id) + "{}";
}

bool CudaWriter::is_across(std::uint32_t id) const { return schedule.shifted && schedule.across_input[fusion.body[id].input]; }

std::string CudaWriter::shift() {
  const ShiftForm start = shift_form(fusion, schedule);
  return fmt::format("(int)(({}) & {})", params.affine(start.form, start.role, index_name), schedule.vector - 1);
}

std::string CudaWriter::load_end_name(std::uint32_t id) { return params.number(fmt::format("e{}_end", id), load_end(fusion, fusion.body[id])); }

bool CudaWriter::is_pack_output(std::size_t output, std::size_t axis) const {
  const FusionOutput& out = fusion.outputs[output];
  return schedule.vector > 1 && out.form.coeff[axis] == 1 && out.bounds.empty() && output < schedule.vector_output.size() && schedule.vector_output[output];
}

std::string CudaWriter::load_address(std::uint32_t id) {
  const Expr& expr = fusion.body[id];
  const std::string role = "e" + std::to_string(id);
  std::string address = params.affine(expr.form, role, index_name);
  for (std::size_t t = 0; t < expr.indirect.size(); ++t) {
    const Indirect& term = expr.indirect[t];
    const std::string name = role + "_index" + std::to_string(t);
    const std::string at = fmt::format("fxf_wrap<{}>({}, {})", index(), value_name(term.expr), params.number(name + "_extent", term.extent));
    address += " + " + at + (term.stride == 1 ? "" : " * " + params.number(name + "_stride", term.stride));
  }
  return address;
}

std::string CudaWriter::guard(const std::vector<Bound>& bounds, const std::string& name) {
  std::string text;
  for (std::size_t b = 0; b < bounds.size(); ++b) text += (b == 0 ? "" : " && ") + bound(bounds[b], fmt::format("{}_guard{}", name, b));
  return text;
}

std::string CudaWriter::load_guard(std::uint32_t id) { return guard(fusion.body[id].bounds, fmt::format("e{}", id)); }

std::string CudaWriter::bound(const Bound& bound, const std::string& role) { return params.bound(bound, role, pack_index_ ? pack_index_ : index_name); }

void CudaWriter::begin_pack(std::size_t axis) {
  pack_index_ = index_name;
  index_name = [axis, first = pack_index_](std::size_t a) { return a == axis ? "(" + first(a) + " + e)" : first(a); };
}

void CudaWriter::end_pack() {
  index_name = std::move(pack_index_);
  pack_index_ = nullptr;
}

void CudaWriter::declare_packs(const std::vector<std::size_t>& outputs, std::size_t axis) {
  for (std::size_t output : outputs) {
    if (is_pack_output(output, axis)) body.linef("{} y{}[{}];", register_type(fusion.outputs[output].meta.dtype), output, schedule.vector);
  }
}

void CudaWriter::put_elements(const std::vector<std::size_t>& outputs, std::size_t axis) {
  for (std::size_t output : outputs) {
    if (is_pack_output(output, axis)) body.linef("y{}[e] = {};", output, output_value(output));
    else store(output);
  }
}

void CudaWriter::store_packs(const std::vector<std::size_t>& outputs, std::size_t axis) {
  for (std::size_t output : outputs) {
    if (!is_pack_output(output, axis)) continue;
    if (schedule.shifted) body.linef("fxf_store_inside({}, {}, y{}, {}, {});", params.output(output), store_address(output), output, index_name(axis), row_length);
    else body.linef("fxf_store({} + {}, y{});", params.output(output), store_address(output), output);
  }
}

std::string CudaWriter::store_address(std::size_t output) {
  return params.affine(fusion.outputs[output].form, params.output(output), index_name);
}

std::string CudaWriter::right_side(std::uint32_t id) {
  const Expr& expr = fusion.body[id];
  const std::string role = "e" + std::to_string(id);
  if (expr.kind == ExprKind::Scalar) return params.scalar(expr.input);
  if (expr.kind == ExprKind::Load) {
    const std::string text = fmt::format("fxf_get({}, {})", params.input(expr.input), load_address(id));
    const std::string guard = both(inside, load_guard(id));
    return guard.empty() ? text : guard + " ? " + text + " : (" + register_type(expr.dtype) + ")0";
  }
  std::size_t bounds = 0;
  ExprNames names;
  names.value = value_name;
  names.affine = [&](const Affine& form) { return params.affine(form, role, index_name); };
  names.bound = [&](const Bound& each) { return bound(each, role + "_bound" + std::to_string(bounds++)); };
  names.narrow = narrow_[id];
  if (is_random(expr)) {
    names.kept_words = "words" + std::to_string(id);
    random_.insert(id);
  }
  return expression_text(fusion, id, Target::Cuda, names);
}

void CudaWriter::statement(std::uint32_t id) {
  const Expr& expr = fusion.body[id];
  FXF_ASSERT(expr.kind != ExprKind::Reduce, "a reduction has no statement");
  body.linef("const {} v{} = {};{}", register_type(expr.dtype), id, right_side(id), comment_of(expr));
}

std::string CudaWriter::output_value(std::size_t output) {
  const FusionOutput& out = fusion.outputs[output];
  const std::string type = register_type(out.meta.dtype);
  const std::string value = value_name(out.expr);
  if (register_type(fusion.body[out.expr].dtype) == type) return value;
  return out.meta.dtype == DType::Bool ? "(" + value + " != 0)" : "(" + type + ")" + value;
}

std::string CudaWriter::guard_of(std::size_t output) { return guard(fusion.outputs[output].bounds, params.output(output)); }

void CudaWriter::store(std::size_t output) {
  const std::string guard = both(inside, guard_of(output));
  body.linef("{}fxf_put({}, {}, {});", guard.empty() ? "" : "if (" + guard + ") ", params.output(output), store_address(output), output_value(output));
}

std::string CudaWriter::accumulator_type(const Accumulator& state) const {
  const Expr& reduce = fusion.body[state.expr];
  const std::string type = register_type(accumulator_dtype(reduce));
  return reduce.row->arg_state ? "fxf_arg<" + type + ", " + index() + ">" : type;
}

std::string CudaWriter::accumulator_init(const Accumulator& state) const {
  const Expr& reduce = fusion.body[state.expr];
  const std::string init = init_text(reduce);
  return reduce.row->arg_state ? fmt::format("{}{{{}, {}}}", accumulator_type(state), init, schedule.index_bits == 32 ? "0x7fffffff" : "0x7fffffffffffffffLL") : init;
}

bool CudaWriter::is_compensated(const Accumulator& state) const {
  const Expr& reduce = fusion.body[state.expr];
  return (reduce.folds_columns || (schedule.compensated && schedule.slabs == 0)) && is_float_sum(reduce);
}

bool CudaWriter::takes_packs(const Accumulator& state) const { return is_compensated(state) || state.online; }

std::string CudaWriter::chain_type(const Accumulator& state) const {
  if (state.online) return "fxf_online<" + accumulator_type(state) + ">";
  return is_compensated(state) ? "fxf_sum<" + accumulator_type(state) + ">" : accumulator_type(state);
}

std::string CudaWriter::chain_init(const Accumulator& state) const { return chained(state, accumulator_init(state)); }

std::string CudaWriter::chained(const Accumulator& state, const std::string& text) const { return takes_packs(state) ? chain_type(state) + "{" + text + ", 0}" : text; }

std::string CudaWriter::chain_fold(const Accumulator& state) const { return fmt::format("{}{}", takes_packs(state) ? "join" : "fold", state.expr); }

void CudaWriter::declare_folds(const std::vector<Accumulator>& states) {
  for (const Accumulator& state : states) {
    const Expr& reduce = fusion.body[state.expr];
    const std::string type = accumulator_type(state);
    if (reduce.row->arg_state) {
      body.linef("const auto fold{0} = [](const {1}& a, const {1}& b) {{ return ({2}) ? b : a; }};", state.expr, type, arg_fold_text(reduce, "a.value", "b.value", "a.index", "b.index"));
    } else if (!state.online) {
      body.linef("const auto fold{0} = []({1} a, {1} b) {{ return ({1})({2}); }};", state.expr, type, fold_text(reduce, Target::Cuda, "a", "b"));
    }
    if (takes_packs(state)) body.linef("const auto join{0} = []({1} a, {1} b) {{ return fxf_join(a, b); }};", state.expr, chain_type(state));
  }
}

std::string CudaWriter::fold_element(const Accumulator& state, const std::string& acc, const std::vector<std::size_t>& reduced) {
  const Expr& reduce = fusion.body[state.expr];
  const std::uint32_t operand = reduce.operands[0];
  const std::string type = register_type(accumulator_dtype(reduce));
  std::string value = value_name(operand);
  if (register_type(fusion.body[operand].dtype) != type) value = type == "bool" ? "(" + value + " != 0)" : "(" + type + ")" + value;
  value = pre_text(reduce, Target::Cuda, value);
  if (state.online) return fmt::format("{} = {};", acc, value);
  if (!reduce.row->arg_state) return fmt::format("{} = {};", acc, fold_text(reduce, Target::Cuda, acc, "(" + value + ")"));
  std::string where;
  if (reduce.operands.size() > 1) {
    where = value_name(reduce.operands[1]);
  } else {
    for (std::size_t axis : reduced) where = where.empty() ? index_name(axis) : "(" + where + ") * " + params.size(axis) + " + " + index_name(axis);
  }
  const std::string fresh = fmt::format("{}{{{}, ({})({})}}", accumulator_type(state), value, index(), where.empty() ? "0" : where);
  return fmt::format("{0} = fold{1}({0}, {2});", acc, state.expr, fresh);
}

std::string CudaWriter::take_pack(const Accumulator& state, int vector) const {
  if (state.online) return fmt::format("acc{0} = fxf_take_online<{1}>(acc{0}, part{0});", state.expr, vector);
  const std::string folded = fmt::format("fxf_fold_parts<{0}>(part{1}, fold{1})", vector, state.expr);
  return fmt::format("acc{0} = {1}(acc{0}, {2});", state.expr, chain_fold(state), chained(state, folded));
}

void CudaWriter::fold_threads(const std::vector<const Accumulator*>& states, int lanes, int threads) {
  constexpr int kWarpLanes = 32;
  if (lanes > kWarpLanes) {
    for (const Accumulator* state : states) {
      body.linef("typedef {0} state{1};\nFXF_SHARED(state{1}, scratch{1}, {2});", chain_type(*state), state->expr, threads / kWarpLanes);
      body.linef("fxf_post_warp(acc{0}, scratch{0}, {1});", state->expr, chain_fold(*state));
    }
    if (!states.empty()) body.line("fxf_barrier();");
  }
  for (const Accumulator* state : states) {
    if (lanes > kWarpLanes) body.linef("acc{0} = fxf_fold_warps<{1}>(acc{0}, scratch{0}, {2});", state->expr, lanes, chain_fold(*state));
    else if (lanes > 1) body.linef("acc{0} = fxf_fold_lanes<{1}>(acc{0}, {2});", state->expr, lanes, chain_fold(*state));
  }
}

std::string CudaWriter::finished(const Accumulator& state, std::uint32_t result, const std::string& acc) {
  const Expr& reduce = fusion.body[result];
  const std::string type = register_type(reduce.dtype);
  if (reduce.row->arg_state && reduce.reduce_output == 1) return fmt::format("({}){}.index", type, acc);
  if (state.online) return fmt::format("({})({})", type, result == state.expr ? acc + ".top" : fmt::format("fxf_total({})", acc));
  const std::string value = reduce.row->arg_state ? acc + ".value" : is_compensated(state) ? "fxf_total(" + acc + ")" : acc;
  return fmt::format("({})({})", type, post_text(reduce, Target::Cuda, value, reduce.folds_columns ? params.kept_count() : params.reduced_count()));
}

void CudaWriter::close_entry(KernelSource& source, const std::string& suffix, std::int64_t blocks, int threads) {
  SourceWriter head;
  const std::string bounds = suffix.empty() && schedule.min_blocks > 0 ? fmt::format("{}, {}", threads, schedule.min_blocks) : fmt::to_string(threads);
  head.begin(fmt::format("FXF_KERNEL({}) {}{}(const FXF_PARAM Params p)", bounds, kEntryName, suffix));
  if (!suffix.empty()) head.line("fxf_await_previous();");
  else if (schedule.split > 1 || schedule.slabs > 0) head.line("fxf_let_next_begin();");
  params.declare(head);
  for (std::uint32_t id : random_) head.linef("fxf_random words{};", id);
  random_.clear();
  std::string text = head.text(), line;
  for (char c : body.text()) {
    line += c;
    if (c != '\n') continue;
    text += line == "\n" ? line : "  " + line;
    line.clear();
  }
  source.text += text + "}\n";
  LaunchConfig launch;
  launch.entry = kEntryName + suffix;
  launch.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.block = {static_cast<std::uint32_t>(threads), 1, 1};
  source.launches.push_back(launch);
  body = SourceWriter();
}

namespace {

std::int64_t cell_bytes(const CudaWriter& writer, const Accumulator& state) {
  const Expr& reduce = writer.fusion.body[state.expr];
  if (state.online) return 2 * ir::itemsize(accumulator_dtype(reduce));
  return chain_bytes(reduce, writer.schedule.compensated);
}

}  // namespace

std::int64_t partial_offset(const CudaWriter& writer, std::size_t state) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < state; ++i) offset += cell_bytes(writer, writer.passes.accumulators[i]) * writer.fusion.kept_numel() * writer.schedule.split;
  return offset;
}

std::int64_t partial_bytes(const CudaWriter& writer) { return partial_offset(writer, writer.passes.accumulators.size()); }

}  // namespace fxfuser::codegen
