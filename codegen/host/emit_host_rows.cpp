// A row at a time: the innermost axis is reduced. Each pass is a loop over the row; reductions run in lanes that are folded
// in a fixed order, values that are dear (exp and the like) are kept in a buffer for later passes where the row fits one. What
// comes next is asked for ahead: the processor foresees neither the next page nor, in a later pass, the next row.

#include <algorithm>

#include "codegen/host/arg_lanes.h"
#include "codegen/host/host_writer.h"
#include "codegen/host/read_ahead.h"

namespace fxfuser::codegen {
namespace {

constexpr int kLanes = 16;  // times schedule.unroll
constexpr std::int64_t kKeep = 8192;  // elements of a kept value: 32 KiB of float on the stack

class Rows {
 public:
  Rows(HostWriter& writer, KernelSource& source)
      : w_(writer), source_(source), fusion_(writer.fusion), passes_(writer.passes), reduced_(writer.reduced_axes()), available_(fusion_.body.size(), false) {
    split_ = w_.schedule.split > 1;
    lanes_ = kLanes * w_.schedule.unroll;
    // A step of an arg reduction waits for compare, mask and blend of the one before: twice the lanes hide it.
    const auto is_arg = [&](const Accumulator& state) { return fusion_.body[state.expr].row->arg_state; };
    if (w_.schedule.unroll > 1 && std::any_of(passes_.accumulators.begin(), passes_.accumulators.end(), is_arg)) lanes_ *= 2;
    slabs_ = w_.schedule.slabs > 0;
    keeps_ = reduced_.size() == 1 && fusion_.reduced_numel() <= kKeep && !split_;
  }

  void run() {
    const std::vector<std::size_t> kept = w_.kept_axes();
    std::int64_t items = fusion_.kept_numel();
    w_.body.begin("for (long long item = begin; item < end; ++item)");
    std::string row = "item";
    if (split_) {
      items *= w_.schedule.split;
      w_.body.linef("const long long row = item / {0}, slab = item % {0};", w_.params.number("split", w_.schedule.split));
      row = "row";
    }
    if (slabs_) {
      items = w_.schedule.slabs;
      begin_slab();
      row = "row";
    }
    if (!kept.empty()) w_.decompose(row, kept);
    range();
    for (std::uint32_t pass = 0; pass < passes_.count; ++pass) {
      row_values(pass);
      loop(pass);
      if (!split_) finish(pass);
    }
    if (split_) {
      partials();
    } else {
      row_outputs();
    }
    if (slabs_) w_.body.end();
    w_.body.end();
    close_entry(w_, source_, "", items, split_ || slabs_ ? 1 : w_.schedule.grain);
  }

 private:
  /// Row + column: an item is a group of rows with columns of its own in the workspace, [group][column] for each fold.
  void begin_slab() {
    const std::string length = w_.product(reduced_), slabs = w_.params.number("slabs", w_.schedule.slabs);
    std::int64_t offset = 0;
    for (const Accumulator& state : passes_.columns) {
      const AccumulatorText text = accumulator_text(fusion_, state);
      w_.body.linef("{0}* const column{1} = ({0}*)(workspace + {2}) + item * ({3});", text.type, state.expr, w_.params.number(fmt::format("columns{}", state.expr), offset), length);
      w_.body.linef("for (long long j = 0; j < {}; ++j) column{}[j] = {};", length, state.expr, text.init);
      offset += fusion_.reduced_numel() * w_.schedule.slabs * 8;
    }
    source_.workspace_bytes = offset;
    const std::string rows = w_.params.number("rows", fusion_.kept_numel());
    w_.body.begin(fmt::format("for (long long row = {0} * item / {1}; row < {0} * (item + 1) / {1}; ++row)", rows, slabs));
  }

  /// [low, high) of the flattened reduced axes that this item covers.
  void range() {
    const std::string total = w_.product(reduced_);
    if (!split_) return;
    w_.body.linef("const long long total = {};", total);
    w_.body.linef("const long long low = total * slab / split, high = total * (slab + 1) / split;");
  }

  /// Row values that can be had before this pass and are needed by anything later.
  void row_values(std::uint32_t pass) {
    std::vector<std::uint32_t> roots;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (!passes_.full[id] && !fusion_.body[id].folds_columns && !available_[id] && fusion_.body[id].kind != ExprKind::Reduce && passes_.pass[id] <= pass) roots.push_back(id);
    }
    const std::vector<std::uint32_t> ids = needed(fusion_, roots, available_);
    std::vector<std::uint32_t> rows;
    for (std::uint32_t id : ids) {
      if (!passes_.full[id] && fusion_.body[id].kind != ExprKind::Reduce) rows.push_back(id);
    }
    w_.statements(rows);
    for (std::uint32_t id : rows) available_[id] = true;
  }


  std::vector<std::size_t> outputs_of(std::uint32_t pass) const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) {
      if (is_full_output(fusion_, passes_, i) && output_pass(fusion_, passes_, i) == pass) out.push_back(i);
    }
    return out;
  }

  std::vector<const Accumulator*> states_of(std::uint32_t pass) const {
    std::vector<const Accumulator*> out;
    for (const Accumulator& state : passes_.accumulators) {
      if (state.pass == pass) out.push_back(&state);
    }
    return out;
  }

  /// Full values this pass computes that a later pass needs too and that are dear.
  void decide_kept(std::uint32_t pass, const std::vector<std::uint32_t>& ids) {
    if (!keeps_ || pass + 1 >= passes_.count) return;
    for (std::uint32_t id : ids) {
      const Expr& expr = fusion_.body[id];
      const bool dear = expr.kind == ExprKind::Compute && (expr.row->cost_special > 0 || expr.row->cost_slots >= 8) && register_type(expr.dtype) == "float";
      if (!dear || !passes_.full[id] || needed_after(pass, id) == false) continue;
      w_.body.linef("float keep{}[{}];", id, kKeep);
      fresh_.push_back(id);
    }
  }

  bool needed_after(std::uint32_t pass, std::uint32_t id) const {
    std::vector<std::uint32_t> roots;
    for (const Accumulator& state : passes_.accumulators) {
      if (state.pass > pass) roots.insert(roots.end(), fusion_.body[state.expr].operands.begin(), fusion_.body[state.expr].operands.end());
    }
    for (const Accumulator& state : passes_.columns) {
      if (state.pass > pass) roots.push_back(fusion_.body[state.expr].operands[0]);
    }
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) {
      if (is_full_output(fusion_, passes_, i) && output_pass(fusion_, passes_, i) > pass) roots.push_back(fusion_.outputs[i].expr);
    }
    const std::vector<std::uint32_t> ids = needed(fusion_, roots, available_);
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  }

  void loop(std::uint32_t pass) {
    const auto states = states_of(pass);
    const auto outputs = outputs_of(pass);
    std::vector<std::uint32_t> roots;
    for (const Accumulator& state : passes_.columns) {
      if (state.pass == pass) roots.push_back(fusion_.body[state.expr].operands[0]);
    }
    if (states.empty() && outputs.empty() && roots.empty()) return;
    for (const Accumulator* state : states) roots.insert(roots.end(), fusion_.body[state->expr].operands.begin(), fusion_.body[state->expr].operands.end());
    for (std::size_t output : outputs) roots.push_back(fusion_.outputs[output].expr);
    const std::vector<std::uint32_t> ids = needed(fusion_, roots, available_);
    fresh_.clear();
    decide_kept(pass, ids);
    for (const Accumulator* state : states) declare(*state);
    step(pass, ids, states, outputs);
    const ReadAhead ahead(w_, split_, pass);
    asked_ = states.empty() ? std::string() : ahead.text(ids, fmt::format("j{}", pass), lanes_);
    walk(pass, !states.empty());
    fold_lanes(states);
    for (std::uint32_t id : fresh_) {
      available_[id] = true;
      kept_.push_back(id);
    }
  }

  void declare(const Accumulator& state) {
    const AccumulatorText text = accumulator_text(fusion_, state);
    const std::string id = std::to_string(state.expr);
    w_.body.linef("{} acc{}[{}];", text.type, id, lanes_);
    if (text.arg) w_.body.linef("long long at{}[{}];", id, lanes_);
    w_.body.linef("for (int lane = 0; lane < {0}; ++lane) acc{1}[lane] = {2}{3};", lanes_, id, text.init, text.arg ? fmt::format(", at{}[lane] = 0x7fffffffffffffffLL", id) : "");
  }

  /// One point of the row as a lambda, so that the vector loop and its tail share one text.
  void step(std::uint32_t pass, const std::vector<std::uint32_t>& ids, const std::vector<const Accumulator*>& states, const std::vector<std::size_t>& outputs) {
    std::string parameters;
    for (std::size_t axis : reduced_) parameters += (parameters.empty() ? "const long long " : ", const long long ") + w_.index_name(axis);
    for (const Accumulator* state : states) {
      const AccumulatorText text = accumulator_text(fusion_, *state);
      parameters += fmt::format("{}{}& sum{}{}", parameters.empty() ? "" : ", ", text.type, state->expr, text.arg ? fmt::format(", long long& best{}", state->expr) : "");
    }
    w_.body.begin(fmt::format("const auto pass{} = [&]({}) __attribute__((always_inline))", pass, parameters));
    const auto plain = w_.value_name;
    w_.value_name = [this, plain](std::uint32_t id) {
      const bool held = std::find(kept_.begin(), kept_.end(), id) != kept_.end();
      return held ? fmt::format("keep{}[{}]", id, w_.index_name(reduced_[0])) : plain(id);
    };
    w_.statements(ids);
    for (std::uint32_t id : fresh_) w_.body.linef("keep{0}[{1}] = v{0};", id, w_.index_name(reduced_[0]));
    for (const Accumulator* state : states) fold(*state);
    for (const Accumulator& state : passes_.columns) {
      if (state.pass == pass) fold_column(state);
    }
    for (std::size_t output : outputs) w_.store(output);
    w_.value_name = plain;
    w_.body.end("};");
  }

  /// What a Reduce takes in at the current point, in its accumulator's type.
  std::string taken_in(const Expr& reduce) {
    const std::uint32_t operand = reduce.operands[0];
    const std::string type = register_type(accumulator_dtype(reduce));
    std::string value = w_.value_name(operand);
    if (register_type(fusion_.body[operand].dtype) != type) value = type == "bool" ? "(" + value + " != 0)" : "(" + type + ")" + value;
    return pre_text(reduce, Target::Host, value);
  }

  void fold_column(const Accumulator& state) {
    std::string at;
    for (std::size_t axis : reduced_) at = at.empty() ? w_.index_name(axis) : "(" + at + ") * " + w_.params.size(axis) + " + " + w_.index_name(axis);
    w_.body.line(fold_statement(fusion_, state, fmt::format("column{}[{}]", state.expr, at), "", "(" + taken_in(fusion_.body[state.expr]) + ")", ""));
  }

  void fold(const Accumulator& state) {
    const Expr& reduce = fusion_.body[state.expr];
    const std::string id = std::to_string(state.expr);
    if (!reduce.row->arg_state) {
      w_.body.line(fold_statement(fusion_, state, "sum" + id, "", "(" + taken_in(reduce) + ")", ""));
      return;
    }
    w_.body.linef("const {} new{} = {};", register_type(accumulator_dtype(reduce)), id, taken_in(reduce));
    w_.body.linef("const long long where{} = {};", id, position(reduce));
    if (ascends(reduce)) {
      w_.body.linef("{{ const bool take = {0}; sum{1} = take ? new{1} : sum{1}; best{1} = take ? where{1} : best{1}; }}", later_wins(reduce, "sum" + id, "new" + id), id);
      return;
    }
    w_.body.line(fold_statement(fusion_, state, "sum" + id, "best" + id, "new" + id, "where" + id));
  }

  bool ascends(const Expr& reduce) const { return reduce.row->arg_state && !(split_ && reduced_.size() > 1) && positions_rise(fusion_, reduce, reduced_); }

  /// Where no element was taken all equal the start value, and the first one is the answer.
  void settle(const Accumulator& state) {
    const Expr& reduce = fusion_.body[state.expr];
    if (!ascends(reduce)) return;
    const auto plain = w_.index_name;
    w_.index_name = [this, plain](std::size_t axis) { return !fusion_.axes[axis].reduced ? plain(axis) : split_ ? std::string("low") : std::string(); };
    w_.body.linef("if (at{0}[0] == 0x7fffffffffffffffLL) at{0}[0] = {1};", state.expr, reduce.operands.size() > 1 ? w_.right_side(reduce.operands[1]) : split_ ? "low" : "0");
    w_.index_name = plain;
  }

  /// Where along the reduced dims a point lies: given by the body, or the axes in order.
  std::string position(const Expr& reduce) {
    if (reduce.operands.size() > 1) return w_.value_name(reduce.operands[1]);
    std::string text;
    for (std::size_t axis : reduced_) text = text.empty() ? w_.index_name(axis) : "(" + text + ") * " + w_.params.size(axis) + " + " + w_.index_name(axis);
    return text.empty() ? "0" : text;
  }

  std::string call(std::uint32_t pass, const std::string& last, const std::string& lane) {
    std::string arguments;
    for (std::size_t i = 0; i < reduced_.size(); ++i) {
      arguments += (i == 0 ? "" : ", ") + (i + 1 == reduced_.size() ? last : w_.index_name(reduced_[i]));
    }
    if (!lane.empty()) {
      for (const Accumulator* state : states_of(pass)) {
        arguments += fmt::format("{}acc{}[{}]", arguments.empty() ? "" : ", ", state->expr, lane);
        if (fusion_.body[state->expr].row->arg_state) arguments += fmt::format(", at{}[{}]", state->expr, lane);
      }
    }
    return fmt::format("pass{}({});", pass, arguments);
  }

  /// The loops around a step: over the whole row, or over [low, high) of it.
  void walk(std::uint32_t pass, bool folds) {
    if (reduced_.empty()) {
      w_.body.line(call(pass, "", folds ? "0" : ""));
      return;
    }
    const std::size_t inner = reduced_.back();
    std::size_t opened = 0;
    std::string from = "0", to = w_.params.size(inner);
    if (split_) {
      if (reduced_.size() == 1) {
        from = "low", to = "high";
      } else {
        w_.body.begin("for (long long at = low; at < high;)");
        ++opened;
        w_.body.linef("const long long from = at % {0}, outer = at / {0};", w_.params.size(inner));
        w_.body.linef("const long long to = {0} - from < high - at ? {0} : from + high - at;", w_.params.size(inner));
        std::vector<std::size_t> outer(reduced_.begin(), reduced_.end() - 1);
        w_.decompose("outer", outer);
        from = "from", to = "to";
      }
    } else {
      for (std::size_t i = 0; i + 1 < reduced_.size(); ++i) {
        const std::string index = w_.index_name(reduced_[i]);
        w_.body.begin(fmt::format("for (long long {0} = 0; {0} < {1}; ++{0})", index, w_.params.size(reduced_[i])));
        ++opened;
      }
    }
    inner_loop(pass, from, to, folds);
    if (split_ && reduced_.size() > 1) w_.body.line("at += to - from;");
    for (; opened > 0; --opened) w_.body.end();
  }

  void inner_loop(std::uint32_t pass, const std::string& from, const std::string& to, bool folds) {
    if (!folds) {
      w_.body.line("#pragma omp simd");
      w_.body.linef("for (long long j = {}; j < {}; ++j) {}", from, to, call(pass, "j", ""));
      return;
    }
    const std::string j = fmt::format("j{}", pass);
    w_.body.linef("long long {} = {};", j, from);
    w_.body.begin(fmt::format("for (; {0} + {1} <= {2}; {0} += {1})", j, lanes_, to));
    if (!asked_.empty()) w_.body.line(asked_);
    w_.body.line("#pragma omp simd");
    w_.body.linef("for (int lane = 0; lane < {}; ++lane) {}", lanes_, call(pass, j + " + lane", "lane"));
    w_.body.end();
    w_.body.linef("for (int lane = 0; {0} < {1}; ++{0}, ++lane) {2}", j, to, call(pass, j, "lane"));
  }

  void fold_lanes(const std::vector<const Accumulator*>& states) {
    for (const Accumulator* state : states) {
      const std::string id = std::to_string(state->expr);
      for (int width = lanes_ / 2; width > 0; width /= 2) {
        w_.body.linef("for (int lane = 0; lane < {}; ++lane) {}", width,
                      fold_statement(fusion_, *state, fmt::format("acc{}[lane]", id), fmt::format("at{}[lane]", id), fmt::format("acc{}[lane + {}]", id, width), fmt::format("at{}[lane + {}]", id, width)));
      }
      settle(*state);
    }
  }

  void finish(std::uint32_t pass) {
    for (const Accumulator* state : states_of(pass)) {
      const bool arg = fusion_.body[state->expr].row->arg_state;
      for (std::uint32_t result : state->results) finish_one(*state, result, arg);
    }
  }

  void finish_one(const Accumulator& state, std::uint32_t result, bool arg) {
    const Expr& reduce = fusion_.body[result];
    const std::string type = register_type(reduce.dtype);
    std::string acc = fmt::format("acc{}[0]", state.expr);
    if (arg && reduce.reduce_output == 1) acc = fmt::format("at{}[0]", state.expr);
    else acc = post_text(reduce, Target::Host, fmt::format("({}){}", register_type(accumulator_dtype(reduce)), acc), w_.params.reduced_count());
    w_.body.linef("const {} v{} = ({})({});{}", type, result, type, acc, comment_of(reduce));
    available_[result] = true;
  }

  void row_outputs() {
    row_values(passes_.count);
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) {
      if (is_row_output(fusion_, passes_, i)) w_.store(i);
    }
  }

  void partials() {
    std::int64_t offset = 0;
    const std::int64_t cells = fusion_.kept_numel() * w_.schedule.split;
    for (const Accumulator& state : passes_.accumulators) {
      const bool arg = fusion_.body[state.expr].row->arg_state;
      const std::string base = w_.params.number(fmt::format("partial{}", state.expr), offset);
      const std::string type = accumulator_text(fusion_, state).type;
      w_.body.linef("*({0}*)(workspace + {1} + item * 8) = ({0})acc{2}[0];", type, base, state.expr);
      offset += cells * 8;
      if (!arg) continue;
      w_.body.linef("*(long long*)(workspace + {} + item * 8) = at{}[0];", w_.params.number(fmt::format("partial_at{}", state.expr), offset), state.expr);
      offset += cells * 8;
    }
    source_.workspace_bytes = offset;
  }

  HostWriter& w_;
  KernelSource& source_;
  const Fusion& fusion_;
  const Passes& passes_;
  std::vector<std::size_t> reduced_;
  std::vector<bool> available_;
  std::vector<std::uint32_t> kept_, fresh_;
  std::string asked_;  // what the current pass prefetches at each step
  int lanes_ = kLanes;
  bool split_ = false, slabs_ = false, keeps_ = false;
};

}  // namespace

void emit_host_rows(HostWriter& writer, KernelSource& source) { Rows(writer, source).run(); }

}  // namespace fxfuser::codegen
