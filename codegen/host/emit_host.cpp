// Host kernels: one C function over a range of work items. The form follows the schedule: elements (pointwise), rows (the
// innermost axis is reduced), columns (it is kept), tiles (transpose).

#include "codegen/host/host_writer.h"
#include "partitioner/ir/error.h"

namespace fxfuser::embedded {
extern std::string_view host_prelude();
}

namespace fxfuser::codegen {

std::string_view host_prelude() { return embedded::host_prelude(); }

KernelSource emit_host(const Fusion& fusion, const Schedule& schedule, const ArchInfo&) {
  const bool reduces = schedule.kind == ScheduleKind::Reduction || schedule.kind == ScheduleKind::Normalization;
  const bool split = reduces && schedule.split > 1;
  HostWriter writer(fusion, schedule, split || schedule.slabs > 0);
  KernelSource source;
  source.target = Target::Host;
  source.eager_rounding = fusion.eager_rounding;
  const bool inner = fusion.axes.empty() || fusion.axes.back().reduced;
  if (!reduces) {
    schedule.kind == ScheduleKind::Transpose ? emit_host_tiles(writer, source) : emit_host_pointwise(writer, source);
  } else if (inner || writer.reduced_axes().empty()) {
    emit_host_rows(writer, source);
  } else {
    emit_host_columns(writer, source);
  }
  if (split) emit_host_finish(writer, source);
  if (schedule.slabs > 0) emit_host_column_finish(writer, source);
  complete_source(source, writer.params, fusion, schedule);
  return source;
}

}  // namespace fxfuser::codegen
