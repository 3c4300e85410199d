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
    const bool pairs = w_.schedule.tile_pack == 2;
    both([&](bool guarded) { pairs ? load_pairs(guarded) : load(guarded); });
    w_.body.line("fxf_barrier();");
    both([&](bool guarded) { pairs ? compute_pairs(guarded) : compute(guarded); });
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
    if (w_.schedule.tile_pack == 2) {
      for (std::uint32_t id : tiles_) {
        w_.body.linef("typedef {} pair{};", w_.pack_type_of(id, 2), id);
        w_.body.linef("FXF_SHARED(pair{0}, tile{0}, {1});", id, tile_ * (pairs() + 1));
      }
      return;
    }
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

  int pairs() const { return tile_ / 2; }

  /// `count` work items over the block's threads, each with its own `at`.
  void begin_items(int count) {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", (count + w_.schedule.threads - 1) / w_.schedule.threads));
    w_.body.linef("const int at = fxf_thread() + u * {};", w_.schedule.threads);
  }

  /// All sizes are even here: a pair is there if its first element is.
  void begin_if_there(bool guarded, int count) {
    std::string guard = guarded ? fmt::format("i{} < {} && i{} < {}", inner_, w_.params.size(inner_), other_, w_.params.size(other_)) : "";
    if (count % w_.schedule.threads != 0) guard += fmt::format("{}at < {}", guard.empty() ? "" : " && ", count);
    w_.body.begin(guard.empty() ? "" : "if (" + guard + ")");
  }

  void begin_line(bool guarded) {
    begin_items(tile_ * pairs());
    w_.body.linef("const int fast = at % {0}, slow = at / {0};", pairs());
    w_.body.linef("const {} i{} = first_across + slow;", w_.index(), inner_);
    w_.body.linef("const {} i{} = first_down + 2 * fast;", w_.index(), other_);
    begin_if_there(guarded, tile_ * pairs());
  }

  void load_pairs(bool guarded) {
    for (std::uint32_t id : tiles_) w_.body.linef("pair{0} x{0}[{1}];", id, (tile_ * pairs() + w_.schedule.threads - 1) / w_.schedule.threads);
    begin_line(guarded);
    for (std::uint32_t id : tiles_) w_.body.linef("x{}[u] = fxf_load<2>({} + {});", id, w_.params.input(w_.fusion.body[id].input), w_.load_address(id));
    end_tile();
    begin_line(guarded);
    for (std::uint32_t id : tiles_) w_.body.linef("FXF_PLACE(tile{0}, slow * {1} + fast, x{0}[u]);", id, pairs() + 1);
    end_tile();
  }

  /// A thread turns 2 x 2 elements. A warp takes 16 pairs along the outputs and 2 across: its reads of the tile, two rows apart
  /// with an odd number of words in a row, meet every bank once.
  void compute_pairs(bool guarded) {
    begin_items(pairs() * pairs());
    w_.body.linef("const int fast = at % 16 + at / 32 % {} * 16, slow = at / 16 % 2 + at / {} * 2;", pairs() / 16, 2 * pairs());
    w_.body.linef("const {} i{} = first_across + 2 * fast;", w_.index(), inner_);
    w_.body.linef("const {} begin{} = first_down + 2 * slow;", w_.index(), other_);
    w_.body.begin("");
    w_.body.linef("const {0} i{1} = begin{1};", w_.index(), other_);
    begin_if_there(guarded, pairs() * pairs());
    for (std::uint32_t id : tiles_) {
      w_.body.linef("const pair{0} x{0}[2] = {{FXF_TAKE(tile{0}, 2 * fast * {1} + slow), FXF_TAKE(tile{0}, (2 * fast + 1) * {1} + slow)}};", id, pairs() + 1);
    }
    w_.body.line("FXF_UNROLL");
    w_.body.begin("for (int down = 0; down < 2; ++down)");
    w_.body.linef("const {0} i{1} = begin{1} + down;", w_.index(), other_);
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.body.linef("{} y{}[2];", register_type(w_.fusion.outputs[i].meta.dtype), i);
    w_.body.line("FXF_UNROLL");
    w_.body.begin("for (int e = 0; e < 2; ++e)");
    w_.begin_pack(inner_);
    for (std::uint32_t id : needed_by_outputs(w_.fusion)) {
      if (is_turned(id)) w_.body.linef("const {} v{} = fxf_get(x{}[e], down);", register_type(w_.fusion.body[id].dtype), id, id);
      else w_.statement(id);
    }
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.body.linef("y{}[e] = {};", i, w_.output_value(i));
    w_.end_pack();
    w_.body.end();
    for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.body.linef("fxf_store({} + {}, y{});", w_.params.output(i), w_.store_address(i), i);
    w_.body.end();
    w_.body.end();
    w_.body.end();
    w_.body.end();
  }

  bool is_turned(std::uint32_t id) const { return std::find(tiles_.begin(), tiles_.end(), id) != tiles_.end(); }

  void compute(bool guarded) {
    begin_tile(false, guarded);
    for (std::uint32_t id : needed_by_outputs(w_.fusion)) {
      const bool turned = is_turned(id);
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
