// CUDA kernels: a fusion under a schedule as text. The form follows the schedule: elements, rows (the innermost axis is
// reduced; a kernel of its own where teams of blocks walk over them), columns (it is kept; several rows side by side where it is short), tiles through shared memory (transpose),
// a short axis turned in registers (interleave).

#include "codegen/cuda/column_folds.h"
#include "codegen/cuda/cuda_writer.h"
#include "partitioner/ir/error.h"

namespace fxfuser::embedded {
extern std::string_view cuda_machine();
extern std::string_view cuda_library();
}

namespace fxfuser::codegen {

std::string_view cuda_prelude() {
  static const std::string text = std::string(embedded::cuda_machine()) + std::string(embedded::cuda_library());
  return text;
}
std::string_view cuda_library() { return embedded::cuda_library(); }

KernelSource emit_cuda(const Fusion& fusion, const Schedule& schedule, const ArchInfo& arch) {
  const bool reduces = schedule.kind == ScheduleKind::Reduction || schedule.kind == ScheduleKind::Normalization;
  const bool split = reduces && schedule.split > 1;
  CudaWriter writer(fusion, schedule, split || schedule.slabs > 0);
  KernelSource source;
  source.target = Target::Cuda;
  source.eager_rounding = fusion.eager_rounding;
  if (schedule.kind == ScheduleKind::Transpose) emit_cuda_transpose(writer, source);
  else if (schedule.kind == ScheduleKind::Interleave) emit_cuda_interleave(writer, source);
  else if (!reduces) emit_cuda_pointwise(writer, source);
  else if (schedule.teams > 0) emit_cuda_row_pipeline(writer, source);
  else if (schedule.inner || fusion.axes.empty() || fusion.axes.back().reduced) emit_cuda_rows(writer, source);
  else if (schedule.rows_across > 1) emit_cuda_short_columns(writer, source);
  else emit_cuda_columns(writer, source);
  if (split) {
    source.workspace_bytes = partial_bytes(writer);
    emit_cuda_finish(writer, source);
  } else if (schedule.slabs > 0) {
    source.workspace_bytes = column_bytes(writer);
    emit_cuda_column_finish(writer, source);
  }
  for (std::size_t i = 1; i < source.launches.size(); ++i) source.launches[i].begins_early = arch.sm >= 90;
  complete_source(source, writer.params, fusion, schedule);
  return source;
}

}  // namespace fxfuser::codegen
