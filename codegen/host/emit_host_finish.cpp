// The second launches: partial values of split rows, or of columns, folded in a fixed order.

#include "codegen/host/host_writer.h"

namespace fxfuser::codegen {

void emit_host_finish(HostWriter& w, KernelSource& source) {
  const Fusion& fusion = w.fusion;
  std::vector<bool> available(fusion.body.size(), false);
  w.body.begin("for (long long item = begin; item < end; ++item)");
  const std::vector<std::size_t> kept = w.kept_axes();
  if (!kept.empty()) w.decompose("item", kept);
  const std::string split = w.params.number("split", w.schedule.split);
  const std::int64_t cells = fusion.kept_numel() * w.schedule.split;
  std::int64_t offset = 0;
  for (const Accumulator& state : w.passes.accumulators) {
    const AccumulatorText text = accumulator_text(fusion, state);
    const std::string id = std::to_string(state.expr);
    const std::string base = w.params.number("partial" + id, offset);
    offset += cells * 8;
    w.body.linef("{} acc{} = {};", text.type, id, text.init);
    if (text.arg) w.body.linef("long long at{} = 0x7fffffffffffffffLL;", id);
    w.body.begin(fmt::format("for (long long slab = 0; slab < {}; ++slab)", split));
    w.body.linef("const {0} new{1} = *(const {0}*)(workspace + {2} + (item * {3} + slab) * 8);", text.type, id, base, split);
    if (text.arg) {
      w.body.linef("const long long where{} = *(const long long*)(workspace + {} + (item * {} + slab) * 8);", id, w.params.number("partial_at" + id, offset), split);
      offset += cells * 8;
    }
    w.body.line(fold_statement(fusion, state, "acc" + id, "at" + id, "new" + id, "where" + id));
    w.body.end();
    for (std::uint32_t result : state.results) {
      const Expr& reduce = fusion.body[result];
      const std::string type = register_type(reduce.dtype);
      std::string value = "at" + id;
      if (!(text.arg && reduce.reduce_output == 1)) {
        value = post_text(reduce, Target::Host, fmt::format("({})acc{}", register_type(accumulator_dtype(reduce)), id), w.params.reduced_count());
      }
      w.body.linef("const {} v{} = ({})({});", type, result, type, value);
      available[result] = true;
    }
  }
  w.statements(needed_by_outputs(fusion, available));
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) w.store(i);
  w.body.end();
  close_entry(w, source, "_finish", fusion.kept_numel(), 1024);
}

void emit_host_column_finish(HostWriter& w, KernelSource& source) {
  const Fusion& fusion = w.fusion;
  const std::string length = w.product(w.reduced_axes()), slabs = w.params.number("slabs", w.schedule.slabs);
  w.body.begin("for (long long item = begin; item < end; ++item)");
  w.decompose("item", w.reduced_axes());
  std::vector<bool> available(fusion.body.size(), false);
  std::int64_t offset = 0;
  for (const Accumulator& state : w.passes.columns) {
    const Expr& reduce = fusion.body[state.expr];
    const AccumulatorText text = accumulator_text(fusion, state);
    w.body.linef("{} acc{} = {};", text.type, state.expr, text.init);
    const std::string part = fmt::format("((const {}*)(workspace + {}))[slab * ({}) + item]", text.type, w.params.number(fmt::format("columns{}", state.expr), offset), length);
    w.body.linef("for (long long slab = 0; slab < {}; ++slab) {}", slabs, fold_statement(fusion, state, fmt::format("acc{}", state.expr), "", part, ""));
    w.body.linef("const {} v{} = ({})({});{}", register_type(reduce.dtype), state.expr, register_type(reduce.dtype),
                 post_text(reduce, Target::Host, fmt::format("({})acc{}", register_type(accumulator_dtype(reduce)), state.expr), w.params.kept_count()), comment_of(reduce));
    available[state.expr] = true;
    offset += fusion.reduced_numel() * w.schedule.slabs * 8;
  }
  std::vector<std::uint32_t> roots;
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (is_column_output(fusion, i)) roots.push_back(fusion.outputs[i].expr);
  }
  w.statements(needed(fusion, roots, available));
  for (std::size_t i = 0; i < fusion.outputs.size(); ++i) {
    if (is_column_output(fusion, i)) w.store(i);
  }
  w.body.end();
  close_entry(w, source, "_columns", fusion.reduced_numel(), 1024);
}

}  // namespace fxfuser::codegen
