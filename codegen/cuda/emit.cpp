// CUDA kernels: a fusion under a schedule as text. The form follows the schedule: elements, rows (the innermost axis is
// reduced), columns (it is kept), tiles through shared memory (transpose).

#include "codegen/cuda/cuda_writer.h"
#include "partitioner/ir/error.h"

namespace fxfuser::embedded {
extern std::string_view cuda_machine();
extern std::string_view cuda_library();
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

std::string_view cuda_prelude() {
  static const std::string text = std::string(embedded::cuda_machine()) + std::string(embedded::cuda_library());
  return text;
}
std::string_view cuda_library() { return embedded::cuda_library(); }

KernelSource emit_cuda(const Fusion& fusion, const Schedule& schedule, const ArchInfo&) {
  const bool reduces = schedule.kind == ScheduleKind::Reduction || schedule.kind == ScheduleKind::Normalization;
  const bool split = reduces && schedule.split > 1;
  CudaWriter writer(fusion, schedule, split);
  KernelSource source;
  source.target = Target::Cuda;
  source.eager_rounding = fusion.eager_rounding;
  if (schedule.kind == ScheduleKind::Transpose) emit_cuda_transpose(writer, source);
  else if (!reduces) emit_cuda_pointwise(writer, source);
  else if (schedule.inner || fusion.axes.empty() || fusion.axes.back().reduced) emit_cuda_rows(writer, source);
  else emit_cuda_columns(writer, source);
  if (split) {
    source.workspace_bytes = partial_bytes(writer);
    emit_cuda_finish(writer, source);
  }
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
