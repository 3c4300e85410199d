// Host kernels: one C function over a range of work items. The form follows the schedule: elements (pointwise), rows (the
// innermost axis is reduced), columns (it is kept), tiles (transpose).

#include "codegen/host/host_writer.h"
#include "partitioner/ir/error.h"

namespace fxfuser::embedded {
extern std::string_view host_prelude();
}

namespace fxfuser::codegen {
namespace {

const char* kind_name(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::Pointwise: return "pointwise";
    case ScheduleKind::Reduction: return "reduction";
    case ScheduleKind::Normalization: return "normalization";
    case ScheduleKind::Transpose: return "transpose";
  }
  return "kernel";
}

}  // namespace

std::string_view host_prelude() { return embedded::host_prelude(); }

KernelSource emit_host(const Fusion& fusion, const Schedule& schedule, const ArchInfo&) {
  const bool reduces = schedule.kind == ScheduleKind::Reduction || schedule.kind == ScheduleKind::Normalization;
  const bool split = reduces && schedule.split > 1;
  HostWriter writer(fusion, schedule, split);
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
  source.text = writer.params.struct_text() + "\n" + source.text;
  source.name = name_kernel(kind_name(schedule.kind), source.text);
  for (LaunchConfig& launch : source.launches) launch.entry.replace(0, std::string(kEntryName).size(), source.name);
  source.pointer_inputs = writer.params.pointer_inputs();
  source.scalar_inputs = writer.params.scalar_inputs();
  source.ints = writer.params.ints();
  source.bytes = traffic_bytes(fusion);
  source.slots_per_element = slots_per_element(fusion);
  return source;
}

}  // namespace fxfuser::codegen
