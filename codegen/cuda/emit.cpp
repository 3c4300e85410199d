#include "codegen/kernel_source.h"
#include "partitioner/ir/error.h"
namespace fxfuser::embedded { extern std::string_view cuda_prelude(); }
namespace fxfuser::codegen {
std::string_view cuda_prelude() { return embedded::cuda_prelude(); }
KernelSource emit_cuda(const Fusion&, const Schedule&, const ArchInfo&) { throw_error(ErrorKind::Internal, "soon"); }
}
