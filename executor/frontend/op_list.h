#pragma once
// The ops whose name, arguments or meaning in the frontend differ from their row's, as of 2022 and of the modern frontend. All
// other rows of the op table are ops under their own name; ATen's remaining ops follow their schemas.

#include <string_view>
#include <vector>

#include "executor/frontend/signature.h"

namespace fxfuser::frontend {

struct ListedOp {
  std::string_view name;
  std::string_view signature;  // "arg, axes|dims, keepdim=False": a bar gives a second keyword
  std::string_view target;     // a row of the table or one overload ("aten.reshape.default"); with a composite: what facts come from
  std::string_view mapping;    // "dims=axes keepdim": the target's parameter = ours, where it is not called the same ("self=arg" is understood); _ for one that means nothing
  RankRule rank = RankRule::Unknown;
  std::string_view length_of = "";
  std::string_view dtypes = "";  // by result: same, param, int, bool
  bool widens = false;
  Composite composite = nullptr;
  std::size_t outputs = 1;
  ArgumentCheck check = nullptr;
  std::string_view doc = "";
  std::string_view infer_as = "";  // RankRule::Infer for a composite row: the primitive row whose result has the same rank and dtype
};

const std::vector<ListedOp>& listed_ops();

/// What an op is on numbers alone: "add" -> "operator.add" with two arguments.
struct ScalarOp {
  std::string_view op, target;
  std::size_t arity;
};
const std::vector<ScalarOp>& scalar_ops();

}  // namespace fxfuser::frontend
