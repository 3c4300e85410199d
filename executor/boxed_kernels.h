#pragma once
// Boxed kernels of the ops that the table defines.

#include <torch/library.h>

#include "executor/row_overload.h"

namespace fxfuser::executor {

/// Runs `form`'s op as the row's ATen overload: arguments reordered, fixed values filled in. An argument that the form takes at
/// its default only raises when it has another value.
torch::CppFunction overload_kernel(const ir::OpRow& row, const ir::OpTarget& form, const c10::FunctionSchema& schema);

/// Runs the op below autograd. With grad mode on and an input that requires grad, floating results require grad too and a
/// backward through them raises RuntimeError.
torch::CppFunction autograd_kernel();

}  // namespace fxfuser::executor
