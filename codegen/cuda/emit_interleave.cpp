// A thread takes all of a short axis beside a vector along a long one. Packs of tensors in which the short axis is innermost follow
// each other in memory; packs of the others lie one for each place of the short axis. Elements are turned in registers: all
// places are constants once the loops are unrolled.

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {
namespace {

class Interleave {
 public:
  Interleave(CudaWriter& writer, KernelSource& source)
      : w_(writer),
        source_(source),
        short_(static_cast<std::size_t>(writer.schedule.short_axis)),
        long_(static_cast<std::size_t>(writer.schedule.long_axis)),
        across_(writer.fusion.axes[short_].size),
        vector_(writer.schedule.vector) {}

  void run() {
    std::vector<std::size_t> outer;
    std::int64_t groups = w_.fusion.axes[long_].size / vector_;
    const std::string inner_groups = w_.params.number("inner_groups", groups);
    for (std::size_t axis = 0; axis < w_.fusion.axes.size(); ++axis) {
      if (axis == short_ || axis == long_) continue;
      outer.push_back(axis);
      groups *= w_.fusion.axes[axis].size;
    }
    const int threads = w_.schedule.threads;
    w_.body.linef("const {0} group = ({0})fxf_block() * {1} + fxf_thread();", w_.index(), threads);
    w_.body.begin(fmt::format("if (group < {})", w_.params.number("groups", groups)));
    w_.body.linef("const {} begin{} = group % {} * {};", w_.index(), long_, inner_groups, vector_);
    if (!outer.empty()) {
      w_.body.linef("const {} outer = group / {};", w_.index(), inner_groups);
      w_.decompose("outer", outer);
    }
    const auto plain = w_.index_name;
    w_.index_name = [this, plain](std::size_t axis) { return axis == short_ ? place_ : axis == long_ ? fmt::format("begin{}", long_) : plain(axis); };
    load();
    elements(plain);
    store();
    w_.index_name = plain;
    w_.body.end();
    w_.close_entry(source_, "", (groups + threads - 1) / threads, threads);
  }

 private:
  bool is_pack(std::uint32_t id) const {
    const Expr& expr = w_.fusion.body[id];
    return expr.kind == ExprKind::Load && w_.schedule.vector_input[expr.input];
  }

  /// Is the short axis innermost in this tensor?
  bool interleaved(const Affine& form) const { return form.coeff[long_] != 1; }

  /// Where pack `k` of a tensor begins beside its first.
  void begin_packs(bool interleaved) {
    w_.body.linef("FXF_UNROLL\nfor (int k = 0; k < {}; ++k)", across_);
    place_ = interleaved ? "0" : "k";
  }

  void load() {
    for (std::uint32_t id = 0; id < w_.fusion.body.size(); ++id) {
      if (!is_pack(id)) continue;
      const Expr& expr = w_.fusion.body[id];
      w_.body.linef("{} x{}[{}];", w_.pack_type(id), id, across_);
      begin_packs(interleaved(expr.form));
      w_.body.linef("  x{}[k] = fxf_load<{}>({} + {}{});", id, vector_, w_.params.input(expr.input), w_.load_address(id), interleaved(expr.form) ? fmt::format(" + k * {}", vector_) : "");
    }
  }

  /// The pack and the place in it of element `e` at place `s` of the short axis.
  std::string at(const Affine& form, const char* before, const char* after) const {
    if (!interleaved(form)) return fmt::format("[s]{}e{}", before, after);
    return fmt::format("[(e * {0} + s) / {1}]{2}(e * {0} + s) % {1}{3}", across_, vector_, before, after);
  }

  void elements(const ParamBlock::IndexName& plain) {
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.body.linef("{} y{}[{}][{}];", register_type(w_.fusion.outputs[i].meta.dtype), i, across_, vector_);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int e = 0; e < {}; ++e)", vector_));
    w_.body.linef("const {0} i{1} = begin{1} + e;", w_.index(), long_);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int s = 0; s < {}; ++s)", across_));
    const auto packs = w_.index_name;
    w_.index_name = [this, plain](std::size_t axis) { return axis == short_ ? "s" : plain(axis); };
    for (std::uint32_t id : needed_by_outputs(w_.fusion)) {
      const Expr& expr = w_.fusion.body[id];
      if (is_pack(id)) w_.body.linef("const {0} v{1} = fxf_get(x{1}{2});", register_type(expr.dtype), id, at(expr.form, ", ", ""));
      else w_.statement(id);
    }
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.body.linef("y{}{} = {};", i, at(w_.fusion.outputs[i].form, "[", "]"), w_.output_value(i));
    w_.index_name = packs;
    w_.body.end();
    w_.body.end();
  }

  void store() {
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) {
      const Affine& form = w_.fusion.outputs[i].form;
      begin_packs(interleaved(form));
      w_.body.linef("  fxf_store({} + {}{}, y{}[k]);", w_.params.output(i), w_.store_address(i), interleaved(form) ? fmt::format(" + k * {}", vector_) : "", i);
    }
  }

  CudaWriter& w_;
  KernelSource& source_;
  std::size_t short_, long_;
  std::int64_t across_;
  int vector_;
  std::string place_;  // index of the short axis where packs begin
};

}  // namespace

void emit_cuda_interleave(CudaWriter& writer, KernelSource& source) { Interleave(writer, source).run(); }

}  // namespace fxfuser::codegen
