#pragma once
// What a plan assumed of a call, as words that are compared: the thread's dispatch state, and of each input its dispatch keys,
// dtype, device, rank, alignment, sizes and strides.

#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fxfuser::executor {

using SignatureWords = c10::SmallVector<std::int64_t, 64>;  // a call's own: no allocation up to a few inputs

/// Appends the words; false (with a reason) when only the module itself may run.
bool sign(std::span<const c10::IValue> inputs, SignatureWords& out, std::string& reason);
/// Inputs that are written (`written`: their indices) must share no memory with others: eager would see each write at once.
bool writes_overlap(std::span<const c10::IValue> inputs, const std::vector<std::size_t>& written);

}  // namespace fxfuser::executor
