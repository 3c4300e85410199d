// Tiles of the two axes that different tensors are contiguous in: both sides stay within a few cache lines.

#include "codegen/host/host_writer.h"

namespace fxfuser::codegen {

void emit_host_tiles(HostWriter& w, KernelSource& source) {
  const std::size_t inner = w.fusion.axes.size() - 1;
  const auto other = static_cast<std::size_t>(w.schedule.tile_axis);
  const std::int64_t tile = w.schedule.tile;
  std::vector<std::size_t> outer;
  std::int64_t items = 1;
  for (std::size_t axis = 0; axis < inner; ++axis) {
    if (axis == other) continue;
    outer.push_back(axis);
    items *= w.fusion.axes[axis].size;
  }
  const auto tiles = [&](std::size_t axis) { return (w.fusion.axes[axis].size + tile - 1) / tile; };
  items *= tiles(inner) * tiles(other);
  const std::string a = w.index_name(inner), b = w.index_name(other);
  w.body.begin("for (long long item = begin; item < end; ++item)");
  w.body.linef("const long long across = ({} + {}) / {}, down = ({} + {}) / {};", w.params.size(inner), tile - 1, tile, w.params.size(other), tile - 1, tile);
  w.body.linef("const long long {0}0 = item % across * {2}, {1}0 = item / across % down * {2};", a, b, tile);
  if (!outer.empty()) {
    w.body.line("const long long outer = item / across / down;");
    w.decompose("outer", outer);
  }
  w.body.linef("const long long {0}1 = {0}0 + {1} < {2} ? {0}0 + {1} : {2};", a, tile, w.params.size(inner));
  w.body.linef("const long long {0}1 = {0}0 + {1} < {2} ? {0}0 + {1} : {2};", b, tile, w.params.size(other));
  w.body.begin(fmt::format("for (long long {0} = {0}0; {0} < {0}1; ++{0})", b));
  w.body.line("#pragma omp simd");
  w.body.begin(fmt::format("for (long long {0} = {0}0; {0} < {0}1; ++{0})", a));
  std::vector<std::uint32_t> roots;
  for (const FusionOutput& output : w.fusion.outputs) roots.push_back(output.expr);
  w.statements(needed(w.fusion, roots, std::vector<bool>(w.fusion.body.size(), false)));
  for (std::size_t i = 0; i < w.fusion.outputs.size(); ++i) w.store(i);
  w.body.end();
  w.body.end();
  w.body.end();
  close_entry(w, source, "", items, w.schedule.grain);
}

}  // namespace fxfuser::codegen
