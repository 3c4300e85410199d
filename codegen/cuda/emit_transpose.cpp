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
      } else if (expr.kind == ExprKind::Load && expr.bounds.empty() && expr.indirect.empty() && ((expr.depends >> inner_) & 1) != 0 && early_.size() < kMaxEarly) {
        early_.push_back(id);
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
    // Only tiles at the edges ask for each element whether it is there: loads without a branch between them are in flight together.
    w_.body.linef("const bool whole = first_across + {0} <= {1} && first_down + {0} <= {2};", tile_, w_.params.size(inner_), w_.params.size(other_));
    declare();
    both([this](bool guarded) { load(guarded); });
    w_.body.line("fxf_barrier();");
    both([this](bool guarded) { compute(guarded); });
    w_.close_entry(source_, "", blocks, w_.schedule.threads);
  }

 private:
  template <typename Part>
  void both(const Part& part) {
    w_.body.begin("if (whole)");
    part(false);
    w_.body.end();
    w_.body.begin("else");
    part(true);
    w_.body.end();
  }

  int steps() const { return (tile_ * tile_ + w_.schedule.threads - 1) / w_.schedule.threads; }

  void begin_tile(bool turned, bool guarded) {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", steps()));
    w_.body.linef("const int at = fxf_thread() + u * {};", w_.schedule.threads);
    w_.body.linef("const int fast = at % {0}, slow = at / {0};", tile_);
    w_.body.linef("const {} i{} = first_across + {};", w_.index(), inner_, turned ? "slow" : "fast");
    w_.body.linef("const {} i{} = first_down + {};", w_.index(), other_, turned ? "fast" : "slow");
    std::string guard = guarded ? fmt::format("i{} < {} && i{} < {}", inner_, w_.params.size(inner_), other_, w_.params.size(other_)) : "";
    if (tile_ * tile_ % w_.schedule.threads != 0) guard += fmt::format("{}at < {}", guard.empty() ? "" : " && ", tile_ * tile_);
    w_.body.begin(guard.empty() ? "" : "if (" + guard + ")");
  }

  void end_tile() {
    w_.body.end();
    w_.body.end();
  }

  /// A row of the tile is one longer than needed, so that columns fall into different banks.
  void declare() {
    for (std::uint32_t id : early_) w_.body.linef("{} early{}[{}];", storage_type(w_.fusion.body[id].dtype), id, steps());
    for (std::uint32_t id : tiles_) w_.body.linef("FXF_SHARED({}, tile{}, {});", storage_type(w_.fusion.body[id].dtype), id, tile_ * (tile_ + 1));
  }

  /// Reads along the other axis, and what the outputs' own axis needs too.
  void load(bool guarded) {
    for (std::uint32_t id : tiles_) w_.body.linef("{} x{}[{}];", storage_type(w_.fusion.body[id].dtype), id, steps());
    begin_tile(true, guarded);
    for (std::uint32_t id : tiles_) w_.body.linef("x{}[u] = fxf_read({} + {});", id, w_.params.input(w_.fusion.body[id].input), w_.load_address(id));
    end_tile();
    if (!early_.empty()) {
      begin_tile(false, guarded);
      for (std::uint32_t id : early_) w_.body.linef("early{}[u] = fxf_read({} + {});", id, w_.params.input(w_.fusion.body[id].input), w_.load_address(id));
      end_tile();
    }
    begin_tile(true, guarded);
    for (std::uint32_t id : tiles_) w_.body.linef("FXF_PLACE(tile{0}, slow * {1} + fast, x{0}[u]);", id, tile_ + 1);
    end_tile();
  }

  void compute(bool guarded) {
    begin_tile(false, guarded);
    std::vector<std::uint32_t> roots;
    for (const FusionOutput& output : w_.fusion.outputs) roots.push_back(output.expr);
    for (std::uint32_t id : needed(w_.fusion, roots, std::vector<bool>(w_.fusion.body.size(), false))) {
      const bool turned = std::find(tiles_.begin(), tiles_.end(), id) != tiles_.end();
      if (turned) w_.body.linef("const {} v{} = fxf_widen(FXF_TAKE(tile{}, fast * {} + slow));", register_type(w_.fusion.body[id].dtype), id, id, tile_ + 1);
      else if (std::find(early_.begin(), early_.end(), id) != early_.end()) w_.body.linef("const {} v{} = fxf_widen(early{}[u]);", register_type(w_.fusion.body[id].dtype), id, id);
      else w_.statement(id);
    }
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.store(i);
    end_tile();
  }

  CudaWriter& w_;
  KernelSource& source_;
  std::size_t inner_, other_;
  int tile_;
  static constexpr std::size_t kMaxEarly = 4;  // inputs whose elements wait in registers for the tile
  std::vector<std::uint32_t> tiles_, early_;
};

}  // namespace

void emit_cuda_transpose(CudaWriter& writer, KernelSource& source) { Transpose(writer, source).run(); }

}  // namespace fxfuser::codegen
