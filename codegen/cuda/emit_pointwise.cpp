// One-shot grid: a thread owns `unroll` groups of `vector` neighbours along the innermost axis.

#include <numeric>

#include "codegen/cuda/cuda_writer.h"
#include "codegen/shifted_rows.h"

namespace fxfuser::codegen {
namespace {

std::int64_t points(const Fusion& fusion) {
  std::int64_t count = 1;
  for (const Axis& axis : fusion.axes) count *= axis.size;
  return count;
}

class Pointwise {
 public:
  Pointwise(CudaWriter& writer, KernelSource& source) : w_(writer), source_(source), vector_(writer.fusion.axes.empty() ? 1 : writer.schedule.vector) {}

  void run() {
    const Schedule& s = w_.schedule;
    const std::int64_t groups = group_count();
    const std::int64_t per_block = static_cast<std::int64_t>(s.threads) * s.unroll;
    const std::string total = w_.params.number("groups", groups);
    w_.body.linef("const {} first = ({})fxf_block() * {} + fxf_thread();", w_.index(), w_.index(), per_block);
    if (s.unroll > 1) {
      w_.body.line("FXF_UNROLL");
      w_.body.begin(fmt::format("for (int u = 0; u < {}; ++u)", s.unroll));
      w_.body.linef("const {} group = first + u * {};", w_.index(), s.threads);
    } else {
      w_.body.linef("const {} group = first;", w_.index());
    }
    w_.body.begin(fmt::format("if (group < {})", total));
    indices();
    if (s.shifted) w_.body.begin(fmt::format("if (i{} < {})", inner_, w_.row_length));
    element();
    if (s.shifted) w_.body.end();
    w_.body.end();
    if (s.unroll > 1) w_.body.end();
    w_.close_entry(source_, "", (groups + per_block - 1) / per_block, s.threads);
  }

 private:
  /// Packs of a row.
  std::int64_t across() const { return (spanned(w_.schedule, w_.fusion.axes.back().size) + vector_ - 1) / vector_; }

  std::int64_t group_count() const {
    const std::int64_t count = points(w_.fusion);
    return w_.schedule.shifted && count > 0 ? count / w_.fusion.axes.back().size * across() : count / vector_;
  }

  void indices() {
    std::vector<std::size_t> axes;
    for (std::size_t axis = 0; axis < w_.fusion.axes.size(); ++axis) axes.push_back(axis);
    if (axes.empty()) return;
    inner_ = axes.back();
    if (vector_ == 1) return w_.decompose("group", axes);
    axes.pop_back();
    const bool shifted = w_.schedule.shifted;
    if (axes.empty()) {
      if (shifted) return shifted_index("group");
      w_.body.linef("const {} i{} = group * {};", w_.index(), inner_, vector_);
      return;
    }
    const std::string groups = w_.params.number("inner_groups", across());
    if (!shifted) w_.body.linef("const {} i{} = group % {} * {};", w_.index(), inner_, groups, vector_);
    w_.body.linef("const {} outer = group / {};", w_.index(), groups);
    w_.decompose("outer", axes);
    if (shifted) shifted_index("group % " + groups);
  }

  /// The place in its row of a pack's first element; it may lie before the row, and a row that starts late in a pack has one more.
  void shifted_index(const std::string& pack) {
    w_.row_length = w_.params.size(inner_);
    w_.body.linef("const {} i{} = {} * {} - {};", w_.index(), inner_, pack, vector_, w_.shift());
  }

  void element() {
    const std::vector<std::uint32_t> ids = needed_by_outputs(w_.fusion);
    if (vector_ == 1) {
      for (std::uint32_t id : ids) w_.statement(id);
      for (std::size_t i = 0; i < w_.fusion.outputs.size(); ++i) w_.store(i);
      return;
    }
    // What does not change along the vector comes first, then all packs, then the elements.
    for (std::uint32_t id : ids) {
      if (((w_.fusion.body[id].depends >> inner_) & 1) == 0) w_.statement(id);
    }
    for (std::uint32_t id : ids) {
      if (w_.is_pack(id, inner_)) w_.body.linef("const auto x{} = {};", id, w_.pack_load(id));
    }
    std::vector<std::size_t> outputs(w_.fusion.outputs.size());
    std::iota(outputs.begin(), outputs.end(), std::size_t{0});
    w_.declare_packs(outputs, inner_);
    w_.body.line("FXF_UNROLL");
    w_.body.begin(fmt::format("for (int e = 0; e < {}; ++e)", vector_));
    w_.begin_pack(inner_);
    if (w_.schedule.shifted) {
      w_.body.linef("const bool inside = fxf_inside({}, {});", w_.index_name(inner_), w_.row_length);
      w_.inside = "inside";
    }
    for (std::uint32_t id : ids) {
      if (((w_.fusion.body[id].depends >> inner_) & 1) == 0) continue;
      if (w_.is_pack(id, inner_)) w_.body.linef("const {} v{} = fxf_get(x{}, e);", register_type(w_.fusion.body[id].dtype), id, id);
      else w_.statement(id);
    }
    w_.put_elements(outputs, inner_);
    w_.inside.clear();
    w_.end_pack();
    w_.body.end();
    w_.store_packs(outputs, inner_);
  }

  CudaWriter& w_;
  KernelSource& source_;
  int vector_;
  std::size_t inner_ = 0;
};

}  // namespace

void emit_cuda_pointwise(CudaWriter& writer, KernelSource& source) { Pointwise(writer, source).run(); }

}  // namespace fxfuser::codegen
