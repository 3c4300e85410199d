#include "codegen/host/host_writer.h"

#include "partitioner/ir/error.h"

namespace fxfuser::codegen {

HostWriter::HostWriter(const Fusion& f, const Schedule& s, bool workspace)
    : params(f, Target::Host, 64, workspace), fusion(f), schedule(s), passes(plan_passes(f)) {
  value_name = [](std::uint32_t id) { return "v" + std::to_string(id); };
  index_name = [](std::size_t axis) { return "i" + std::to_string(axis); };
}

std::string HostWriter::load(const Expr& expr, const std::string& role) {
  std::string address = params.affine(expr.form, role, index_name);
  for (std::size_t t = 0; t < expr.indirect.size(); ++t) {
    const Indirect& term = expr.indirect[t];
    const std::string name = role + "_index" + std::to_string(t);
    const std::string at = fmt::format("fxf_wrap((long long){}, {})", value_name(term.expr), params.number(name + "_extent", term.extent));
    address += " + " + at + (term.stride == 1 ? "" : " * " + params.number(name + "_stride", term.stride));
  }
  const std::string text = fmt::format("fxf_get({}, {})", params.input(expr.input), address);
  if (expr.bounds.empty()) return text;
  std::string guard;
  for (std::size_t b = 0; b < expr.bounds.size(); ++b) {
    guard += (b == 0 ? "" : " && ") + params.bound(expr.bounds[b], role + "_guard" + std::to_string(b), index_name);
  }
  return guard + " ? " + text + " : (" + register_type(expr.dtype) + ")0";
}

std::string HostWriter::right_side(std::uint32_t id) {
  const Expr& expr = fusion.body[id];
  const std::string role = "e" + std::to_string(id);
  if (expr.kind == ExprKind::Load) return load(expr, role);
  if (expr.kind == ExprKind::Scalar) return params.scalar(expr.input);
  std::size_t bounds = 0;
  ExprNames names;
  names.value = value_name;
  names.affine = [&](const Affine& form) { return params.affine(form, role, index_name); };
  names.bound = [&](const Bound& bound) { return params.bound(bound, role + "_bound" + std::to_string(bounds++), index_name); };
  return expression_text(fusion, id, Target::Host, names);
}

void HostWriter::statements(const std::vector<std::uint32_t>& ids) {
  for (std::uint32_t id : ids) {
    const Expr& expr = fusion.body[id];
    FXF_ASSERT(expr.kind != ExprKind::Reduce, "a reduction has no statement");
    body.linef("const {} v{} = {};{}", register_type(expr.dtype), id, right_side(id), comment_of(expr));
  }
}

void HostWriter::store(std::size_t output) {
  const FusionOutput& out = fusion.outputs[output];
  const std::string role = params.output(output);
  std::string guard;
  for (std::size_t b = 0; b < out.bounds.size(); ++b) {
    guard += (b == 0 ? "" : " && ") + params.bound(out.bounds[b], role + "_guard" + std::to_string(b), index_name);
  }
  const DType from = fusion.body[out.expr].dtype;
  const std::string type = register_type(out.meta.dtype);
  std::string value = value_name(out.expr);
  if (register_type(from) != type) value = out.meta.dtype == DType::Bool ? "(" + value + " != 0)" : "(" + type + ")" + value;
  const std::string address = params.affine(out.form, role, index_name);
  body.linef("{}fxf_put({}, {}, {});", guard.empty() ? "" : "if (" + guard + ") ", role, address, value);
}

void HostWriter::decompose(const std::string& linear, const std::vector<std::size_t>& axes) {
  std::string rest = linear;
  for (std::size_t at = axes.size(); at-- > 0;) {
    const std::string index = index_name(axes[at]);
    if (at == 0) {
      body.linef("const long long {} = {};", index, rest);
      return;
    }
    const std::string size = params.size(axes[at]);
    body.linef("const long long {} = {} % {};", index, rest, size);
    const std::string next = "rest" + std::to_string(axes[at]);
    body.linef("const long long {} = {} / {};", next, rest, size);
    rest = next;
  }
}

std::string HostWriter::product(const std::vector<std::size_t>& axes) {
  std::string text;
  for (std::size_t axis : axes) text += (text.empty() ? "" : " * ") + params.size(axis);
  return text.empty() ? "1" : text;
}

std::vector<std::size_t> HostWriter::kept_axes() const {
  std::vector<std::size_t> out;
  for (std::size_t axis = 0; axis < fusion.axes.size(); ++axis) {
    if (!fusion.axes[axis].reduced) out.push_back(axis);
  }
  return out;
}

std::vector<std::size_t> HostWriter::reduced_axes() const {
  std::vector<std::size_t> out;
  for (std::size_t axis = 0; axis < fusion.axes.size(); ++axis) {
    if (fusion.axes[axis].reduced) out.push_back(axis);
  }
  return out;
}

std::string HostWriter::head(const std::string& entry) {
  return "extern \"C\" void " + entry + "(const Params* p, long long begin, long long end) {\n";
}

namespace {

bool accumulates(const ir::Expr& fold) {
  for (const ir::ExprPiece& piece : fold) {
    if (piece.kind == ir::ExprPiece::Kind::Text && (piece.text == "+" || piece.text == "*")) return true;
  }
  return false;
}

}  // namespace

AccumulatorText accumulator_text(const Fusion& fusion, const Accumulator& state) {
  const Expr& reduce = fusion.body[state.expr];
  const DType dtype = accumulator_dtype(reduce);
  AccumulatorText out;
  out.arg = reduce.row->arg_state;
  // Sums and products of floats run in double: long rows stay as exact as eager's cascades, and memory is the limit anyway.
  out.type = dtype == DType::Float32 && accumulates(reduce.row->fold) && !out.arg ? "double" : register_type(dtype);
  out.init = init_text(reduce);
  return out;
}

std::string fold_statement(const Fusion& fusion, const Accumulator& state, const std::string& acc, const std::string& acc_index,
                           const std::string& value, const std::string& value_index) {
  const Expr& reduce = fusion.body[state.expr];
  if (!reduce.row->arg_state) return fmt::format("{} = {};", acc, fold_text(reduce, Target::Host, acc, value));
  const std::string take = arg_fold_text(reduce, acc, value, acc_index, value_index);
  return fmt::format("{{ const bool take = {}; {} = take ? {} : {}; {} = take ? {} : {}; }}", take, acc, value, acc, acc_index, value_index, acc_index);
}

void close_entry(HostWriter& writer, KernelSource& source, const std::string& suffix, std::int64_t work_items, std::int64_t grain) {
  SourceWriter head;
  head.begin(fmt::format("extern \"C\" void {}{}(const Params* p, long long begin, long long end)", kEntryName, suffix));
  writer.params.declare(head);
  std::string text = head.text();
  // The body was written at depth 0: one level deeper.
  std::string line;
  for (char c : writer.body.text()) {
    line += c;
    if (c != '\n') continue;
    text += line == "\n" ? line : "  " + line;
    line.clear();
  }
  source.text += text + "}\n";
  LaunchConfig launch;
  launch.entry = kEntryName + suffix;
  launch.work_items = work_items;
  launch.grain = std::max<std::int64_t>(grain, 1);
  source.launches.push_back(launch);
  writer.body = SourceWriter();
}

}  // namespace fxfuser::codegen
