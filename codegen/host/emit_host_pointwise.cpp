// Elements in memory order: the innermost axis is a vectorised loop, the outer ones are decomposed once a run of it.

#include "codegen/host/host_writer.h"

namespace fxfuser::codegen {
namespace {

std::int64_t points(const Fusion& fusion) {
  std::int64_t count = 1;
  for (const Axis& axis : fusion.axes) count *= axis.size;
  return count;
}

void element(HostWriter& w) {
  w.statements(needed_by_outputs(w.fusion));
  for (std::size_t i = 0; i < w.fusion.outputs.size(); ++i) w.store(i);
}

}  // namespace

void emit_host_pointwise(HostWriter& w, KernelSource& source) {
  std::vector<std::size_t> axes(w.fusion.axes.size());
  for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = axis;
  if (axes.size() <= 1) {
    const std::string index = axes.empty() ? "i" : w.index_name(0);
    w.body.line("#pragma omp simd");
    w.body.begin(fmt::format("for (long long {0} = begin; {0} < end; ++{0})", index));
    element(w);
    w.body.end();
  } else {
    const std::size_t inner = axes.back();
    axes.pop_back();
    const std::string size = w.params.size(inner), index = w.index_name(inner);
    w.body.begin("for (long long at = begin; at < end;)");
    w.body.linef("const long long start = at % {}, outer = at / {};", size, size);
    w.body.linef("const long long run = {} - start < end - at ? {} - start : end - at;", size, size);
    w.decompose("outer", axes);
    w.body.line("#pragma omp simd");
    w.body.begin(fmt::format("for (long long {0} = start; {0} < start + run; ++{0})", index));
    element(w);
    w.body.end();
    w.body.line("at += run;");
    w.body.end();
  }
  close_entry(w, source, "", points(w.fusion), w.schedule.grain);
}

}  // namespace fxfuser::codegen
