// Tiles through shared memory: inputs that are contiguous in another axis are read along that axis, in packs, and turned on the way.
//
// A word of a tile is a bank wide: `unit` neighbours along the tile's axis of a narrow dtype. A line of the tile, along that axis, has
// one word more than needed, an odd number, so that words one below the other fall into different banks. A thread takes from it what
// it stores: `unit` rows of `vector` elements along the outputs' axis.

#include <algorithm>
#include <functional>
#include <numeric>

#include "codegen/cuda/cuda_writer.h"

namespace fxfuser::codegen {
namespace {

constexpr int kBanks = 32;

class Transpose {
 public:
  Transpose(CudaWriter& writer, KernelSource& source)
      : w_(writer),
        source_(source),
        inner_(writer.fusion.axes.size() - 1),
        other_(static_cast<std::size_t>(writer.schedule.tile_axis)),
        tile_(writer.schedule.tile),
        pack_(writer.schedule.tile_pack),
        vector_(writer.schedule.vector) {
    for (std::uint32_t id = 0; id < w_.fusion.body.size(); ++id) {
      const Expr& expr = w_.fusion.body[id];
      if (expr.kind != ExprKind::Load || !expr.bounds.empty() || !expr.indirect.empty()) continue;
      const auto& turned = w_.schedule.transposed_inputs;
      if (expr.form.coeff[other_] == 1 && std::find(turned.begin(), turned.end(), expr.input) != turned.end()) tiles_.push_back(id);
      else if (((expr.depends >> inner_) & 1) != 0 && (vector_ == 1 || w_.is_pack(id, inner_)) && early_.size() < kMaxEarly) early_.push_back(id);
    }
    for (std::uint32_t id : tiles_) unit_ = std::max(unit_, kWord / static_cast<int>(ir::itemsize(w_.fusion.inputs[w_.fusion.body[id].input].meta.dtype)));
    unit_ = std::min(unit_, pack_);
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
    // Only tiles at the edges ask for each pack whether it is there: loads without a branch between them are in flight together.
    w_.body.linef("const bool whole = first_across + {0} <= {1} && first_down + {0} <= {2};", tile_, w_.params.size(inner_), w_.params.size(other_));
    for (std::uint32_t id : tiles_) {
      w_.body.linef("typedef {} word{};", w_.pack_type_of(id, unit_), id);
      w_.body.linef("FXF_SHARED(word{0}, tile{0}, {1});", id, tile_ * pitch());
    }
    for (std::uint32_t id : early_) w_.body.linef("{} early{}[{}][{}];", w_.pack_type_of(id, vector_), id, steps(shares()), unit_);
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

  /// Words of a line of the tile.
  int pitch() const { return tile_ / unit_ + 1; }
  int packs() const { return tile_ * tile_ / pack_; }
  /// What threads take from the tile: pieces of `unit` rows.
  int shares() const { return tile_ * tile_ / (unit_ * vector_); }
  int steps(int count) const { return (count + w_.schedule.threads - 1) / w_.schedule.threads; }
  bool is_turned(std::uint32_t id) const { return std::find(tiles_.begin(), tiles_.end(), id) != tiles_.end(); }
  bool is_early(std::uint32_t id) const { return std::find(early_.begin(), early_.end(), id) != early_.end(); }

  /// `count` work items over the block's threads, each with its own `at`; `place` names its indices. Sizes are whole numbers of packs and
  /// of units: one is there if its first element is.
  void begin_items(int count, bool guarded, const std::function<void()>& place) {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", steps(count)));
    w_.body.linef("const int at = fxf_thread() + u * {};", w_.schedule.threads);
    place();
    std::string guard = guarded ? fmt::format("i{} < {} && i{} < {}", inner_, w_.params.size(inner_), other_, w_.params.size(other_)) : "";
    if (count % w_.schedule.threads != 0) guard += fmt::format("{}at < {}", guard.empty() ? "" : " && ", count);
    w_.body.begin(guard.empty() ? "" : "if (" + guard + ")");
  }

  void end_items() {
    w_.body.end();
    w_.body.end();
  }

  void begin_packs(bool guarded) {
    begin_items(packs(), guarded, [this] {
      w_.body.linef("const int fast = at % {0}, slow = at / {0};", tile_ / pack_);
      w_.body.linef("const {} i{} = first_across + slow;", w_.index(), inner_);
      w_.body.linef("const {} i{} = first_down + fast * {};", w_.index(), other_, pack_);
    });
  }

  /// A warp takes so many pieces across that with its rows down it meets every bank once.
  void begin_shares(bool guarded) {
    begin_items(shares(), guarded, [this] {
      const int fast = std::max(kBanks / vector_, 1), slow = kBanks / fast, groups = tile_ / kBanks;
      w_.body.linef("const int fast = at % {0} + at / {1} % {2} * {0}, slow = at / {0} % {3} + at / {4} * {3};", fast, kBanks, groups, slow, kBanks * groups);
      w_.body.linef("const {} i{} = first_across + fast * {};", w_.index(), inner_, vector_);
      w_.body.linef("const {} i{} = first_down + slow * {};", w_.index(), other_, unit_);
    });
  }

  /// Reads along the other axis, and what the outputs' own axis needs too.
  void load(bool guarded) {
    for (std::uint32_t id : tiles_) w_.body.linef("{} x{}[{}];", w_.pack_type_of(id, pack_), id, steps(packs()));
    begin_packs(guarded);
    for (std::uint32_t id : tiles_) w_.body.linef("x{}[u] = fxf_load<{}>({} + {});", id, pack_, w_.params.input(w_.fusion.body[id].input), w_.load_address(id));
    end_items();
    if (!early_.empty()) {
      begin_shares(guarded);
      begin_rows();
      for (std::uint32_t id : early_) w_.body.linef("early{}[u][down] = fxf_load<{}>({} + {});", id, vector_, w_.params.input(w_.fusion.body[id].input), w_.load_address(id));
      end_rows();
      end_items();
    }
    begin_packs(guarded);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int w = 0; w < {}; ++w)", pack_ / unit_));
    for (std::uint32_t id : tiles_) w_.body.linef("FXF_PLACE(tile{0}, slow * {1} + fast * {2} + w, fxf_part<{3}>(x{0}[u], w));", id, pitch(), pack_ / unit_, unit_);
    w_.body.end();
    end_items();
  }

  /// The rows of a piece: `down` counts them, and the index is that of the row.
  void begin_rows() {
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int down = 0; down < {}; ++down)", unit_));
    if (unit_ == 1) return;
    first_index_ = w_.index_name;
    w_.index_name = [axis = other_, first = first_index_](std::size_t a) { return a == axis ? "(" + first(a) + " + down)" : first(a); };
  }

  void end_rows() {
    if (unit_ > 1) w_.index_name = first_index_;
    w_.body.end();
  }

  void compute(bool guarded) {
    std::vector<std::size_t> outputs(w_.fusion.outputs.size());
    std::iota(outputs.begin(), outputs.end(), std::size_t{0});
    const std::vector<std::uint32_t> ids = needed_by_outputs(w_.fusion);
    const auto is_along = [&](std::uint32_t id) { return ((w_.fusion.body[id].depends >> inner_) & 1) != 0; };
    const auto is_pack = [&](std::uint32_t id) { return !is_turned(id) && !is_early(id) && w_.is_pack(id, inner_); };
    begin_shares(guarded);
    for (std::uint32_t id : tiles_) {
      w_.body.linef("word{} x{}[{}];", id, id, vector_);
      w_.body.linef("FXF_UNROLL for (int e = 0; e < {0}; ++e) x{1}[e] = FXF_TAKE(tile{1}, (fast * {0} + e) * {2} + slow);", vector_, id, pitch());
    }
    begin_rows();
    for (std::uint32_t id : ids) {
      if (!is_along(id)) w_.statement(id);
    }
    for (std::uint32_t id : ids) {
      if (is_pack(id)) w_.body.linef("const auto x{} = {};", id, w_.pack_load(id));
    }
    w_.declare_packs(outputs, inner_);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int e = 0; e < {}; ++e)", vector_));
    w_.begin_pack(inner_);
    for (std::uint32_t id : ids) {
      if (!is_along(id)) continue;
      const std::string from = is_turned(id) ? fmt::format("x{}[e], down", id) : is_early(id) ? fmt::format("early{}[u][down], e", id) : is_pack(id) ? fmt::format("x{}, e", id) : "";
      if (from.empty()) w_.statement(id);
      else w_.body.linef("const {} v{} = fxf_get({});", register_type(w_.fusion.body[id].dtype), id, from);
    }
    w_.put_elements(outputs, inner_);
    w_.end_pack();
    w_.body.end();
    w_.store_packs(outputs, inner_);
    end_rows();
    end_items();
  }

  static constexpr int kWord = 4;              // bytes of a bank
  static constexpr std::size_t kMaxEarly = 4;  // inputs whose elements wait in registers for the tile

  CudaWriter& w_;
  KernelSource& source_;
  std::size_t inner_, other_;
  int tile_, pack_, vector_, unit_ = 1;
  std::vector<std::uint32_t> tiles_, early_;
  ParamBlock::IndexName first_index_;
};

}  // namespace

void emit_cuda_transpose(CudaWriter& writer, KernelSource& source) { Transpose(writer, source).run(); }

}  // namespace fxfuser::codegen
