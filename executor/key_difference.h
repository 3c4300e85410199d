#pragma once
// Why a call was not taken by the plan that was used before it: which fields of the key differ, with both values.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/options.h"
#include "executor/signature.h"

namespace fxfuser::executor {

/// The key of a plan.
struct PlanKey {
  std::vector<std::int64_t> signature;
  Options options;
};

struct KeyDifference {
  std::string field;  // "sizes", "option rounding", ...
  std::string text;   // "input 0 (x_1): sizes [4, 3] -> [5, 3]"
};

/// Each field that differs, by input in order, then options. `names`: of the inputs.
std::vector<KeyDifference> key_differences(const PlanKey& before, const PlanKey& now, std::span<const std::string> names);

/// What a user can do about misses of a kind.
std::string_view advice_on(std::string_view field);

}  // namespace fxfuser::executor
