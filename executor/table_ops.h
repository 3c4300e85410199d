#pragma once
// The dispatcher ops that the table defines: `torch.ops.nvprims`, one op a target of that namespace, and the few `fxfuser` ops
// that stand in where no single ATen overload computes what a row says.

#include <torch/library.h>

#include <string>
#include <utility>
#include <vector>

#include "partitioner/ir/op_table.h"

namespace fxfuser::executor {

/// One op of the nvprims namespace, ready to be defined.
struct TableOp {
  std::string name;  // as the dispatcher spells it, without its namespace
  c10::FunctionSchema schema;
  std::vector<at::Tag> tags;
  std::vector<std::pair<c10::DispatchKey, torch::CppFunction>> kernels;
};

/// The nvprims that a table's rows name. Each runs as its row's ATen overload on every backend, meta included; its results can't
/// be differentiated. Throws Error(Value) naming the row on a schema that is none or that the row doesn't fit.
std::vector<TableOp> make_table_ops(const ir::OpTable& table);
/// Defines those that the dispatcher lacks, for as long as the process lives.
void define_table_ops(std::vector<TableOp> ops);

}  // namespace fxfuser::executor
