// Blocks of columns: the innermost axis is kept, so lanes run across kept elements and the reduced axes are the loops around
// them. Row values live in lane arrays.

#include <algorithm>

#include "codegen/host/host_writer.h"

namespace fxfuser::codegen {
namespace {

constexpr std::int64_t kWidth = 64;

class Columns {
 public:
  Columns(HostWriter& writer, KernelSource& source)
      : w_(writer), source_(source), fusion_(writer.fusion), passes_(writer.passes), reduced_(writer.reduced_axes()), kept_(writer.kept_axes()), available_(fusion_.body.size(), false) {
    inner_ = kept_.back();
    kept_.pop_back();
    split_ = w_.schedule.split > 1;
    w_.value_name = [this](std::uint32_t id) { return available_[id] ? fmt::format("r{}[lane]", id) : fmt::format("v{}", id); };
  }

  void run() {
    const std::int64_t blocks = (fusion_.axes[inner_].size + kWidth - 1) / kWidth;
    std::int64_t items = blocks;
    for (std::size_t axis : kept_) items *= fusion_.axes[axis].size;
    w_.body.begin("for (long long item = begin; item < end; ++item)");
    std::string at = "item";
    if (split_) {
      items *= w_.schedule.split;
      w_.body.linef("const long long tile = item / {0}, slab = item % {0};", w_.params.number("split", w_.schedule.split));
      at = "tile";
    }
    const std::string size = w_.params.size(inner_);
    w_.body.linef("const long long blocks = ({} + {}) / {};", size, kWidth - 1, kWidth);
    w_.body.linef("const long long start = {} % blocks * {};", at, kWidth);
    w_.body.linef("const int width = {0} - start < {1} ? (int)({0} - start) : {1};", size, kWidth);
    if (!kept_.empty()) {
      w_.body.linef("const long long outer = {} / blocks;", at);
      w_.decompose("outer", kept_);
    }
    if (split_) {
      w_.body.linef("const long long total = {};", w_.product(reduced_));
      w_.body.line("const long long low = total * slab / split, high = total * (slab + 1) / split;");
    }
    for (std::uint32_t pass = 0; pass < passes_.count; ++pass) {
      row_values(pass);
      loop(pass);
      if (!split_) finish(pass);
    }
    split_ ? partials() : row_outputs();
    w_.body.end();
    const std::int64_t grain = std::max<std::int64_t>(w_.schedule.grain / kWidth, 1);
    close_entry(w_, source_, "", items, split_ ? 1 : grain);
  }

 private:
  void begin_lanes() {
    w_.body.line("#pragma omp simd");
    w_.body.begin("for (int lane = 0; lane < width; ++lane)");
    w_.body.linef("const long long {} = start + lane;", w_.index_name(inner_));
  }

  void row_values(std::uint32_t pass) {
    std::vector<std::uint32_t> roots;
    for (std::uint32_t id = 0; id < fusion_.body.size(); ++id) {
      if (!passes_.full[id] && !available_[id] && fusion_.body[id].kind != ExprKind::Reduce && passes_.pass[id] <= pass) roots.push_back(id);
    }
    const std::vector<std::uint32_t> ids = needed(fusion_, roots, available_);
    if (ids.empty()) return;
    for (std::uint32_t id : ids) w_.body.linef("{} r{}[{}];", register_type(fusion_.body[id].dtype), id, kWidth);
    begin_lanes();
    w_.statements(ids);
    for (std::uint32_t id : ids) w_.body.linef("r{0}[lane] = v{0};", id);
    w_.body.end();
    for (std::uint32_t id : ids) available_[id] = true;
  }

  void loop(std::uint32_t pass) {
    const auto [states, outputs, roots] = pass_work(fusion_, passes_, pass);
    if (roots.empty()) return;
    for (const Accumulator* state : states) {
      const AccumulatorText text = accumulator_text(fusion_, *state);
      w_.body.linef("{} acc{}[{}];", text.type, state->expr, kWidth);
      if (text.arg) w_.body.linef("long long at{}[{}];", state->expr, kWidth);
      w_.body.linef("for (int lane = 0; lane < {0}; ++lane) acc{1}[lane] = {2}{3};", kWidth, state->expr, text.init,
                    text.arg ? fmt::format(", at{}[lane] = 0x7fffffffffffffffLL", state->expr) : "");
    }
    open_loops();
    begin_lanes();
    w_.statements(needed(fusion_, roots, available_));
    for (const Accumulator* state : states) fold(*state);
    for (std::size_t output : outputs) w_.store(output);
    w_.body.end();
    close_loops();
  }

  void open_loops() {
    if (split_) {
      w_.body.begin("for (long long at = low; at < high; ++at)");
      w_.decompose("at", reduced_);
      return;
    }
    for (std::size_t axis : reduced_) {
      w_.body.begin(fmt::format("for (long long {0} = 0; {0} < {1}; ++{0})", w_.index_name(axis), w_.params.size(axis)));
    }
  }

  void close_loops() {
    for (std::size_t i = 0; i < (split_ ? 1 : reduced_.size()); ++i) w_.body.end();
  }

  void fold(const Accumulator& state) {
    const Expr& reduce = fusion_.body[state.expr];
    const std::uint32_t operand = reduce.operands[0];
    const std::string type = register_type(accumulator_dtype(reduce));
    std::string value = w_.value_name(operand);
    if (register_type(fusion_.body[operand].dtype) != type) value = type == "bool" ? "(" + value + " != 0)" : "(" + type + ")" + value;
    value = "(" + pre_text(reduce, Target::Host, value) + ")";
    std::string where;
    if (reduce.row->arg_state) {
      if (reduce.operands.size() > 1) {
        where = w_.value_name(reduce.operands[1]);
      } else {
        for (std::size_t axis : reduced_) where = where.empty() ? w_.index_name(axis) : "(" + where + ") * " + w_.params.size(axis) + " + " + w_.index_name(axis);
        where = "(" + where + ")";
      }
    }
    w_.body.line(fold_statement(fusion_, state, fmt::format("acc{}[lane]", state.expr), fmt::format("at{}[lane]", state.expr), value, where));
  }

  void finish(std::uint32_t pass) {
    for (const Accumulator& state : passes_.accumulators) {
      if (state.pass != pass) continue;
      for (std::uint32_t result : state.results) {
        const Expr& reduce = fusion_.body[result];
        const std::string type = register_type(reduce.dtype);
        std::string value = fmt::format("at{}[lane]", state.expr);
        if (!(reduce.row->arg_state && reduce.reduce_output == 1)) {
          value = post_text(reduce, Target::Host, fmt::format("({})acc{}[lane]", register_type(accumulator_dtype(reduce)), state.expr), w_.params.reduced_count());
        }
        w_.body.linef("{} r{}[{}];{}", type, result, kWidth, comment_of(reduce));
        w_.body.linef("for (int lane = 0; lane < width; ++lane) r{}[lane] = ({})({});", result, type, value);
        available_[result] = true;
      }
    }
  }

  void row_outputs() {
    row_values(passes_.count);
    if (std::none_of(fusion_.outputs.begin(), fusion_.outputs.end(), [&](const FusionOutput& out) {
          return !is_full_output(fusion_, passes_, static_cast<std::size_t>(&out - fusion_.outputs.data()));
        })) {
      return;
    }
    begin_lanes();
    for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) {
      if (!is_full_output(fusion_, passes_, i)) w_.store(i);
    }
    w_.body.end();
  }

  /// Partials lie as [kept point][slab], like those of rows, so that one finish serves both.
  void partials() {
    std::int64_t offset = 0;
    const std::int64_t cells = fusion_.kept_numel() * w_.schedule.split;
    const std::string outer = kept_.empty() ? "0" : "outer";
    w_.body.begin("for (int lane = 0; lane < width; ++lane)");
    w_.body.linef("const long long cell = (({} * {} + start + lane) * split + slab) * 8;", outer, w_.params.size(inner_));
    for (const Accumulator& state : passes_.accumulators) {
      const AccumulatorText text = accumulator_text(fusion_, state);
      w_.body.linef("*({}*)(workspace + {} + cell) = acc{}[lane];", text.type, w_.params.number(fmt::format("partial{}", state.expr), offset), state.expr);
      offset += cells * 8;
      if (!text.arg) continue;
      w_.body.linef("*(long long*)(workspace + {} + cell) = at{}[lane];", w_.params.number(fmt::format("partial_at{}", state.expr), offset), state.expr);
      offset += cells * 8;
    }
    w_.body.end();
    source_.workspace_bytes = offset;
    w_.value_name = [](std::uint32_t id) { return "v" + std::to_string(id); };
  }

  HostWriter& w_;
  KernelSource& source_;
  const Fusion& fusion_;
  const Passes& passes_;
  std::vector<std::size_t> reduced_, kept_;
  std::vector<bool> available_;
  std::size_t inner_ = 0;
  bool split_ = false;
};

}  // namespace

void emit_host_columns(HostWriter& writer, KernelSource& source) { Columns(writer, source).run(); }

}  // namespace fxfuser::codegen
