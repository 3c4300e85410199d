#pragma once
// The parameter block that kernels of both targets share: which 8-byte word holds which size, stride, offset or bound, and how
// the text names them. A coefficient of 0 or 1 and an offset of 0 are written into the text; every other number is a word of
// the block, found by its role and never by its value, so the text stays the same when only sizes change.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/arch.h"
#include "codegen/fusion.h"
#include "codegen/kernel_source.h"
#include "codegen/source_writer.h"

namespace fxfuser::codegen {

class ParamBlock {
 public:
  /// `index_bits` 32 or 64: the type that the hoisted locals have. `workspace`: an extra pointer at the end.
  ParamBlock(const Fusion& fusion, Target target, int index_bits, bool workspace = false);

  /// Name of the index type: "int" or "long long".
  const std::string& index_type() const { return index_type_; }
  /// A named number: the same role gives the same name; `value` is what the block holds.
  std::string number(const std::string& role, std::int64_t value);
  std::string size(std::size_t axis);
  /// Number of points of the reduced axes, for {n} of a reduction, as a floating value.
  std::string reduced_count();
  /// The same of the kept axes, for a fold of columns.
  std::string kept_count();

  using IndexName = std::function<std::string(std::size_t axis)>;  // empty: the axis does not take part
  /// Text of an affine form; `role` names its numbers ("in0", "out1", ...). "0" when nothing is left.
  std::string affine(const Affine& form, const std::string& role, const IndexName& index);
  /// Text of low <= form < high.
  std::string bound(const Bound& bound, const std::string& role, const IndexName& index);

  /// Typed pointer declarations and all numbers used so far as locals. Call after the body was written, emit before it.
  void declare(SourceWriter& out) const;
  /// `struct Params { ... };`
  std::string struct_text() const;
  std::string input(std::uint32_t fusion_input) const { return "in" + std::to_string(fusion_input); }
  std::string output(std::size_t output) const { return "out" + std::to_string(output); }
  /// A scalar input as a value of its dtype's register type.
  std::string scalar(std::uint32_t fusion_input) const;

  const std::vector<std::int64_t>& ints() const { return ints_; }
  const std::vector<std::uint32_t>& pointer_inputs() const { return pointer_inputs_; }
  const std::vector<std::uint32_t>& scalar_inputs() const { return scalar_inputs_; }

 private:
  const Fusion& fusion_;
  Target target_;
  std::string index_type_;
  bool workspace_;
  std::vector<std::int64_t> ints_;
  std::vector<std::string> names_;        // of ints_, in order
  std::map<std::string, std::size_t> by_role_;
  std::vector<std::uint32_t> pointer_inputs_, scalar_inputs_;
};

/// Bytes of all tensors a fusion reads or writes, each once (a broadcast input counts what it holds).
std::int64_t traffic_bytes(const Fusion& fusion);
/// What is the same for every emitter once the text and the launches are there: the parameter block in front, the kernel's name
/// in place of kEntryName, inputs, numbers and costs.
void complete_source(KernelSource& source, const ParamBlock& params, const Fusion& fusion, const Schedule& schedule);
/// What stands for the kernel's name in an emitter's text and launches.
inline constexpr const char* kEntryName = "FXF_ENTRY";

}  // namespace fxfuser::codegen
