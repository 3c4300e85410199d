#include "codegen/param_block.h"

#include <algorithm>
#include <set>

#include "codegen/expr_writer.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/hash.h"

namespace fxfuser::codegen {

ParamBlock::ParamBlock(const Fusion& fusion, Target target, int index_bits, bool workspace)
    : fusion_(fusion), target_(target), index_type_(index_bits == 32 ? "int" : "long long"), workspace_(workspace) {
  for (std::uint32_t i = 0; i < fusion.inputs.size(); ++i) {
    (fusion.inputs[i].scalar ? scalar_inputs_ : pointer_inputs_).push_back(i);
  }
}

std::string ParamBlock::number(const std::string& role, std::int64_t value) {
  const auto [found, fresh] = by_role_.emplace(role, ints_.size());
  if (fresh) {
    ints_.push_back(value);
    names_.push_back(role);
  }
  FXF_ASSERT(ints_[found->second] == value, "role {} has two values", role);
  return role;
}

std::string ParamBlock::size(std::size_t axis) { return number("size" + std::to_string(axis), fusion_.axes[axis].size); }

std::string ParamBlock::kept_count() { return "(double)" + number("kept_count", fusion_.kept_numel()); }
std::string ParamBlock::reduced_count() { return "(double)" + number("reduced_count", fusion_.reduced_numel()); }

std::string ParamBlock::affine(const Affine& form, const std::string& role, const IndexName& index) {
  std::string text;
  const auto add = [&](std::string term) { text += text.empty() ? term : " + " + term; };
  for (std::size_t axis = 0; axis < form.coeff.size(); ++axis) {
    const std::int64_t coeff = form.coeff[axis];
    if (coeff == 0) continue;
    const std::string name = index(axis);
    if (name.empty()) continue;
    add(coeff == 1 ? name : name + " * " + number(role + "_stride" + std::to_string(axis), coeff));
  }
  if (form.offset != 0) add(number(role + "_offset", form.offset));
  return text.empty() ? "0" : text;
}

std::string ParamBlock::bound(const Bound& bound, const std::string& role, const IndexName& index) {
  const std::string form = affine(bound.form, role, index);
  const std::string low = bound.low == 0 ? "0" : number(role + "_low", bound.low);
  return "(" + form + " >= " + low + " && " + form + " < " + number(role + "_high", bound.high) + ")";
}

std::string ParamBlock::scalar(std::uint32_t fusion_input) const {
  const auto at = std::find(scalar_inputs_.begin(), scalar_inputs_.end(), fusion_input) - scalar_inputs_.begin();
  const DType dtype = fusion_.inputs[fusion_input].meta.dtype;
  const char* member = ir::is_floating(dtype) ? "s" : "t";  // a word read as double or as integer
  return fmt::format("({})p{}{}[{}]", register_type(dtype), target_ == Target::Host ? "->" : ".", member, at);
}

void ParamBlock::declare(SourceWriter& out) const {
  const std::string p = target_ == Target::Host ? "p->" : "p.";
  const char* restricted = target_ == Target::Cuda ? " __restrict__" : "";
  std::set<ir::ValueId> written;
  std::size_t at = 0;
  for (const std::uint32_t i : pointer_inputs_) {
    const std::string type = storage_type(fusion_.inputs[i].meta.dtype);
    out.linef("const {}*{} {} = (const {}*){}ptr[{}];", type, restricted, input(i), type, p, at++);
  }
  for (std::size_t i = 0; i < fusion_.outputs.size(); ++i) {
    const std::string type = storage_type(fusion_.outputs[i].meta.dtype);
    out.linef("{}*{} {} = ({}*){}ptr[{}];", type, restricted, output(i), type, p, at++);
  }
  if (workspace_) out.linef("char* workspace = (char*){}ptr[{}];", p, at++);
  for (std::size_t i = 0; i < names_.size(); ++i) out.linef("const {} {} = ({}){}n[{}];", index_type_, names_[i], index_type_, p, i);
}

std::string ParamBlock::struct_text() const {
  const std::size_t pointers = pointer_inputs_.size() + fusion_.outputs.size() + (workspace_ ? 1 : 0);
  std::string text = "struct Params {\n";
  if (pointers > 0) text += fmt::format("  void* ptr[{}];\n", pointers);
  if (!ints_.empty()) text += fmt::format("  long long n[{}];\n", ints_.size());
  if (!scalar_inputs_.empty()) text += fmt::format("  union {{\n    double s[{0}];\n    long long t[{0}];\n  }};\n", scalar_inputs_.size());
  return text + "};\n";
}

std::int64_t traffic_bytes(const Fusion& fusion) {
  std::int64_t bytes = 0;
  const auto held = [](const ir::TensorMeta& meta) {
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < meta.sizes.size(); ++d) elements *= meta.strides[d] == 0 ? std::min<std::int64_t>(meta.sizes[d], 1) : meta.sizes[d];
    return elements * ir::itemsize(meta.dtype);
  };
  for (const FusionInput& input : fusion.inputs) bytes += input.scalar ? 0 : held(input.meta);
  for (const FusionOutput& output : fusion.outputs) bytes += output.meta.numel() * ir::itemsize(output.meta.dtype);
  return bytes;
}

namespace {

/// "fxfuser_<kind>_<hash8>", which replaces kEntryName in the text.
std::string name_kernel(const std::string& kind, std::string& text) {
  const std::string name = "fxfuser_" + kind + "_" + ir::to_hex(ir::hash_bytes(text)).substr(0, 8);
  for (std::size_t at = text.find(kEntryName); at != std::string::npos; at = text.find(kEntryName, at)) {
    text.replace(at, std::string(kEntryName).size(), name);
  }
  return name;
}

/// The functions that rows of the fusion call and that are not the prelude's, each text once: also in a unit of several kernels.
std::string row_functions(const Fusion& fusion, Target target) {
  std::string text;
  std::set<std::string> names;
  for (const Expr& expr : fusion.body) {
    if (expr.row == nullptr) continue;
    const std::string& functions = target == Target::Host ? expr.row->functions.host : expr.row->functions.cuda;
    const std::string name = functions.empty() ? "" : ir::functions_namespace(functions);
    if (name.empty() || !names.insert(name).second) continue;
    text += fmt::format("#ifndef HAS_{0}\n#define HAS_{0}\nnamespace {0} {{\n{1}\n}}\n#endif\n", name, functions);
  }
  return text;
}

}  // namespace

void complete_source(KernelSource& source, const ParamBlock& params, const Fusion& fusion, const Schedule& schedule) {
  source.text = row_functions(fusion, source.target) + params.struct_text() + "\n" + source.text;
  source.name = name_kernel(std::string(name(schedule.kind)), source.text);
  for (LaunchConfig& launch : source.launches) launch.entry.replace(0, std::string(kEntryName).size(), source.name);
  source.pointer_inputs = params.pointer_inputs();
  source.scalar_inputs = params.scalar_inputs();
  source.ints = params.ints();
  source.bytes = traffic_bytes(fusion);
  source.slots_per_element = slots_per_element(fusion);
}

}  // namespace fxfuser::codegen
