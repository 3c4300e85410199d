// Tiles through shared memory: inputs that are contiguous in another axis are read along that axis and turned on the way.

#include <algorithm>

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {
namespace {

class Transpose {
 public:
  Transpose(CudaWriter& writer, KernelSource& source)
      : w_(writer), source_(source), inner_(writer.fusion.axes.size() - 1), other_(static_cast<std::size_t>(writer.schedule.tile_axis)), tile_(writer.schedule.tile) {
    for (std::uint32_t id = 0; id < w_.fusion.body.size(); ++id) {
      const Expr& expr = w_.fusion.body[id];
      const auto& turned = w_.schedule.transposed_inputs;
      if (expr.kind == ExprKind::Load && expr.form.coeff[other_] == 1 && expr.bounds.empty() && expr.indirect.empty() &&
          std::find(turned.begin(), turned.end(), expr.input) != turned.end()) {
        tiles_.push_back(id);
      }
    }
  }

  void run() {
    const auto count = [&](std::size_t axis) { return (w_.fusion.axes[axis].size + tile_ - 1) / tile_; };
    std::int64_t blocks = count(inner_) * count(other_);
    std::vector<std::size_t> outer;
    for (std::size_t axis = 0; axis < inner_; ++axis) {
      if (axis == other_) continue;
      outer.push_back(axis);
      blocks *= w_.fusion.axes[axis].size;
    }
    const std::string across = w_.params.number("tiles_across", count(inner_)), down = w_.params.number("tiles_down", count(other_));
    w_.body.linef("const {} block = fxf_block();", w_.index());
    w_.body.linef("const {} first_across = block % {} * {};", w_.index(), across, tile_);
    w_.body.linef("const {} first_down = block / {} % {} * {};", w_.index(), across, down, tile_);
    if (!outer.empty()) {
      w_.body.linef("const {} outer = block / {} / {};", w_.index(), across, down);
      w_.decompose("outer", outer);
    }
    load();
    w_.body.line("fxf_barrier();");
    compute();
    w_.close_entry(source_, "", blocks, w_.schedule.threads);
  }

 private:
  void begin_tile(bool turned) {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int at = fxf_thread(); at < {}; at += {})", tile_ * tile_, w_.schedule.threads));
    w_.body.linef("const int fast = at % {0}, slow = at / {0};", tile_);
    w_.body.linef("const {} i{} = first_across + {};", w_.index(), inner_, turned ? "slow" : "fast");
    w_.body.linef("const {} i{} = first_down + {};", w_.index(), other_, turned ? "fast" : "slow");
    w_.body.begin(fmt::format("if (i{} < {} && i{} < {})", inner_, w_.params.size(inner_), other_, w_.params.size(other_)));
  }

  /// Reads along the other axis; a row of the tile is one longer than needed, so that columns fall into different banks.
  void load() {
    for (std::uint32_t id : tiles_) {
      const std::string type = storage_type(w_.fusion.body[id].dtype);
      w_.body.linef("FXF_SHARED({}, tile{}, {});", type, id, tile_ * (tile_ + 1));
    }
    begin_tile(true);
    for (std::uint32_t id : tiles_) {
      w_.body.linef("FXF_PLACE(tile{}, slow * {} + fast, fxf_read({} + {}));", id, tile_ + 1, w_.params.input(w_.fusion.body[id].input), w_.load_address(id));
    }
    w_.body.end();
    w_.body.end();
  }

  void compute() {
    begin_tile(false);
    std::vector<std::uint32_t> roots;
    for (const FusionOutput& output : w_.fusion.outputs) roots.push_back(output.expr);
    for (std::uint32_t id : needed(w_.fusion, roots, std::vector<bool>(w_.fusion.body.size(), false))) {
      const bool turned = std::find(tiles_.begin(), tiles_.end(), id) != tiles_.end();
      if (turned) w_.body.linef("const {} v{} = fxf_widen(FXF_TAKE(tile{}, fast * {} + slow));", register_type(w_.fusion.body[id].dtype), id, id, tile_ + 1);
      else w_.statement(id);
    }
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.store(i);
    w_.body.end();
    w_.body.end();
  }

  CudaWriter& w_;
  KernelSource& source_;
  std::size_t inner_, other_;
  int tile_;
  std::vector<std::uint32_t> tiles_;
};

}  // namespace

void emit_cuda_transpose(CudaWriter& writer, KernelSource& source) { Transpose(writer, source).run(); }

}  // namespace fxfuser::codegen
