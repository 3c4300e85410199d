#pragma once
// The order in which a fusion with reductions is computed, for emitters of both targets: loops over the reduced axes ("passes"),
// each of which folds some reductions and stores some full-level outputs, with row values computed in between.

#include <cstdint>
#include <vector>

#include "codegen/fusion.h"

namespace fxfuser::codegen {

/// A reduction's running state; the value and the index of an arg reduction share one.
struct Accumulator {
  std::uint32_t expr = 0;                 // the (first) Reduce
  std::vector<std::uint32_t> results;     // Reduce expressions that read it
  std::uint32_t pass = 0;
  bool online = false;                    // a maximum and the sum of exponentials below it (online_sums.h): two results
};

struct Passes {
  std::uint32_t count = 0;                      // loops over the reduced axes
  std::vector<std::uint32_t> pass;              // per expression: the first loop in which (or before which) it can be had
  std::vector<Accumulator> accumulators;
  std::vector<bool> full;                       // per expression: depends on a reduced axis, and is had inside a pass
  std::vector<Accumulator> columns;             // folds over the kept axes: fed in their pass, complete after the last row
};

/// `online`: sums of exponentials are folded together with the maximum that they lie below.
Passes plan_passes(const Fusion& fusion, bool online = false);

/// Expressions that `roots` need, ascending, not going below expressions for which `available` holds (those are left out).
std::vector<std::uint32_t> needed(const Fusion& fusion, const std::vector<std::uint32_t>& roots, const std::vector<bool>& available);

/// Those that the outputs need. `available` may be shorter than the body: what it does not hold is not available.
std::vector<std::uint32_t> needed_by_outputs(const Fusion& fusion, std::vector<bool> available = {});

/// Is an output made from folded columns, after the last row?
bool is_column_output(const Fusion& fusion, std::size_t output);

/// Does an output depend on reduced axes (is it stored inside a loop)?
bool is_full_output(const Fusion& fusion, const Passes& passes, std::size_t output);

/// The loop that stores a full output: the one after its value's, where that is a reduction's.
std::uint32_t output_pass(const Fusion& fusion, const Passes& passes, std::size_t output);

/// What one loop is for: the folds it feeds, the full outputs it stores, and the expressions that these need.
struct PassWork {
  std::vector<const Accumulator*> states;
  std::vector<std::size_t> outputs;
  std::vector<std::uint32_t> roots;
};
PassWork pass_work(const Fusion& fusion, const Passes& passes, std::uint32_t pass);

/// Is an output stored once a row?
bool is_row_output(const Fusion& fusion, const Passes& passes, std::size_t output);

}  // namespace fxfuser::codegen
