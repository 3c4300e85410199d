// Tiles of the two axes that different tensors are contiguous in: inputs that are contiguous along the other axis are turned into
// a tile on the stack, by squares in vector registers, so that both sides move whole cache lines and all loops are along vectors.

#include <algorithm>

#include "codegen/host/host_writer.h"

namespace fxfuser::codegen {
namespace {

class Tiles {
 public:
  Tiles(HostWriter& writer, KernelSource& source)
      : w_(writer), source_(source), inner_(w_.fusion.axes.size() - 1), other_(static_cast<std::size_t>(w_.schedule.tile_axis)), tile_(w_.schedule.tile),
        a_(w_.index_name(inner_)), b_(w_.index_name(other_)) {}

  void run() {
    std::vector<std::size_t> outer;
    std::int64_t items = 1;
    for (std::size_t axis = 0; axis < inner_; ++axis) {
      if (axis == other_) continue;
      outer.push_back(axis);
      items *= w_.fusion.axes[axis].size;
    }
    const auto tiles = [&](std::size_t axis) { return (w_.fusion.axes[axis].size + tile_ - 1) / tile_; };
    items *= tiles(inner_) * tiles(other_);
    w_.body.begin("for (long long item = begin; item < end; ++item)");
    w_.body.linef("const long long across = ({} + {}) / {}, down = ({} + {}) / {};", w_.params.size(inner_), tile_ - 1, tile_, w_.params.size(other_), tile_ - 1, tile_);
    w_.body.linef("const long long {0}0 = item % across * {2}, {1}0 = item / across % down * {2};", a_, b_, tile_);
    if (!outer.empty()) {
      w_.body.line("const long long outer = item / across / down;");
      w_.decompose("outer", outer);
    }
    for (const std::size_t axis : {inner_, other_}) {
      w_.body.linef("const int {0}_count = {2} - {0}0 < {1} ? (int)({2} - {0}0) : {1};", w_.index_name(axis), tile_, w_.params.size(axis));
    }
    turn_inputs();
    points();
    w_.body.end();
    close_entry(w_, source_, "", items, w_.schedule.grain);
  }

 private:
  bool is_turned(const Expr& expr) const {
    const std::vector<std::uint32_t>& inputs = w_.schedule.transposed_inputs;
    return expr.kind == ExprKind::Load && std::find(inputs.begin(), inputs.end(), expr.input) != inputs.end();
  }

  /// The address of a load at the tile's first point, `step` further along the innermost axis.
  std::string address(const Expr& expr, std::uint32_t id, bool step) {
    return w_.params.affine(expr.form, "e" + std::to_string(id), [&](std::size_t axis) {
      const std::string name = w_.index_name(axis);
      if (axis == inner_) return step ? "(" + name + "0 + 1)" : name + "0";
      return axis == other_ ? name + "0" : name;
    });
  }

  /// Tiles lie as [other axis][innermost axis].
  void turn_inputs() {
    for (std::uint32_t id = 0; id < w_.fusion.body.size(); ++id) {
      const Expr& expr = w_.fusion.body[id];
      if (!is_turned(expr)) continue;
      turned_.push_back(id);
      w_.body.linef("{} tile{}[{}];", storage_type(w_.fusion.inputs[expr.input].meta.dtype), id, tile_ * tile_);
      w_.body.linef("const long long first{0} = {1}, step{0} = {2} - first{0};", id, address(expr, id, false), address(expr, id, true));
      w_.body.linef("fxf_turn({0} + first{1}, step{1}, {2}_count, {3}_count, tile{1}, {4});", w_.params.input(expr.input), id, a_, b_, tile_);
    }
  }

  void points() {
    w_.body.begin(fmt::format("for (int row = 0; row < {}_count; ++row)", b_));
    w_.body.linef("const long long {0} = {0}0 + row;", b_);
    w_.body.line("#pragma omp simd");
    w_.body.begin(fmt::format("for (int column = 0; column < {}_count; ++column)", a_));
    w_.body.linef("const long long {0} = {0}0 + column;", a_);
    std::vector<bool> available(w_.fusion.body.size(), false);
    for (const std::uint32_t id : turned_) {
      available[id] = true;
      w_.body.linef("const {0} v{1} = fxf_get(tile{1}, row * {2} + column);", register_type(w_.fusion.body[id].dtype), id, tile_);
    }
    w_.statements(needed_by_outputs(w_.fusion, available));
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.store(i);
    w_.body.end();
    w_.body.end();
  }

  HostWriter& w_;
  KernelSource& source_;
  std::size_t inner_, other_;
  std::int64_t tile_;
  std::string a_, b_;
  std::vector<std::uint32_t> turned_;
};

}  // namespace

void emit_host_tiles(HostWriter& writer, KernelSource& source) { Tiles(writer, source).run(); }

}  // namespace fxfuser::codegen
