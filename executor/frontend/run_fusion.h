#pragma once
// Runs a fusion: inputs checked against the definition, the program of the service, results as the frontend returns them.

#include <ATen/core/ivalue.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/frontend/fusion_cache.h"
#include "executor/frontend/signature.h"
#include "executor/interface/fxfuser.h"

namespace fxfuser::frontend {

struct RunArguments {
  executor::Options options;
  bool aten = false;                 // every op by itself, through ATen: what a result is compared with
  std::optional<ir::Device> device;  // where ops without tensors make theirs; else where the inputs are
};

/// The results in order, without those that are written into an input. Tensors never require grad. `warnings` (may be null)
/// takes what could not be fused and why.
/// Throws Error(NotImplemented) for a definition without outputs, Error(Value) for a wrong number of inputs, a wrong rank or size,
/// Error(Type) for a wrong kind or dtype; each names the input.
std::vector<c10::IValue> run_fusion(Service& service, const OpSource& ops, Fusion& fusion, std::span<const c10::IValue> inputs, const RunArguments& arguments,
                                    std::vector<std::string>* warnings = nullptr);

/// The graph that a fusion runs as, in text form.
std::string graph_text(const OpSource& ops, const Fusion& fusion);

}  // namespace fxfuser::frontend
