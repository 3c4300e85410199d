#include "executor/frontend/run_fusion.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/GradMode.h>

#include <cstdio>

#include "executor/frontend/python_text.h"
#include "executor/frontend/replay.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/text.h"

namespace fxfuser::frontend {
namespace {

/// "input 1 (T3)": the definition's name for it.
std::string input_name(const Fusion& fusion, std::size_t input) {
  ir::ValueId value = 0;
  for (std::size_t i = 0; i < fusion.inputs()[input]; ++i) value += static_cast<ir::ValueId>(facts_of(fusion.records()[i]).size());
  return fmt::format("input {} ({})", input, value_name(value, facts_of(fusion.records()[fusion.inputs()[input]]).at(0).kind));
}

std::optional<ir::DType> dtype_of(c10::ScalarType type) {
  static const std::vector<std::pair<c10::ScalarType, ir::DType>> table = {
      {c10::ScalarType::Bool, ir::DType::Bool},           {c10::ScalarType::Byte, ir::DType::UInt8},
      {c10::ScalarType::Char, ir::DType::Int8},           {c10::ScalarType::Short, ir::DType::Int16},
      {c10::ScalarType::Int, ir::DType::Int32},           {c10::ScalarType::Long, ir::DType::Int64},
      {c10::ScalarType::Half, ir::DType::Float16},        {c10::ScalarType::BFloat16, ir::DType::BFloat16},
      {c10::ScalarType::Float, ir::DType::Float32},       {c10::ScalarType::Double, ir::DType::Float64},
      {c10::ScalarType::ComplexFloat, ir::DType::Complex64}, {c10::ScalarType::ComplexDouble, ir::DType::Complex128},
      {c10::ScalarType::Float8_e4m3fn, ir::DType::Float8E4M3}, {c10::ScalarType::Float8_e5m2, ir::DType::Float8E5M2},
  };
  for (const auto& [scalar, dtype] : table) {
    if (scalar == type) return dtype;
  }
  return std::nullopt;
}

void check_tensor(const Fusion& fusion, std::size_t at, const TensorRecord& record, const c10::IValue& value) {
  const auto name = [&] { return input_name(fusion, at); };
  FXF_CHECK(value.isTensor(), Type, "{} is defined as a Tensor, a {} was given", name(), value.tagKind());
  const at::Tensor& tensor = value.toTensor();
  const auto dtype = dtype_of(tensor.scalar_type());
  FXF_CHECK(dtype == record.dtype, Type, "{} is defined as {}, a tensor of {} was given", name(), data_type_name(record.dtype), c10::toString(tensor.scalar_type()));
  FXF_CHECK(tensor.dim() == static_cast<std::int64_t>(record.sizes.size()), Value, "{} is defined with {} dims, a tensor with {} was given", name(), record.sizes.size(), tensor.dim());
  FXF_CHECK(!record.is_cpu || tensor.is_cpu(), Value, "{} is defined with is_cpu=True, a tensor on {} was given", name(), tensor.device().str());
  for (std::size_t d = 0; d < record.sizes.size(); ++d) {
    const std::int64_t size = tensor.size(static_cast<std::int64_t>(d));
    FXF_CHECK(record.sizes[d] == -1 || record.sizes[d] == size, Value, "{}: dim {} is defined with size {}, {} was given", name(), d, record.sizes[d], size);
  }
}

/// A number in the kind of the definition: an int may come where a Double is defined, a bool where an Int is.
c10::IValue checked_number(const Fusion& fusion, std::size_t at, ir::DType dtype, const c10::IValue& value) {
  if (dtype == ir::DType::Float64) {
    if (value.isDouble()) return value;
    if (value.isInt()) return static_cast<double>(value.toInt());
    if (value.isBool()) return value.toBool() ? 1.0 : 0.0;
  }
  if (dtype == ir::DType::Int64 && value.isInt()) return value;
  if (dtype == ir::DType::Int64 && value.isBool()) return static_cast<std::int64_t>(value.toBool());
  if (dtype == ir::DType::Bool && value.isBool()) return value;
  if (dtype == ir::DType::Complex128) {
    if (value.isComplexDouble()) return value;
    if (value.isDouble()) return c10::complex<double>(value.toDouble());
    if (value.isInt()) return c10::complex<double>(static_cast<double>(value.toInt()));
  }
  throw_error(ErrorKind::Type, fmt::format("{} is defined as a Scalar of {}, a {} was given", input_name(fusion, at), data_type_name(dtype), value.tagKind()));
}

std::vector<c10::IValue> checked(const Fusion& fusion, std::span<const c10::IValue> inputs) {
  FXF_CHECK(inputs.size() == fusion.inputs().size(), Value, "the fusion takes {} inputs, {} were given", fusion.inputs().size(), inputs.size());
  std::vector<c10::IValue> out(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Record& record = fusion.records()[fusion.inputs()[i]];
    if (const auto* tensor = std::get_if<TensorRecord>(&record)) check_tensor(fusion, i, *tensor, out[i]);
    else out[i] = checked_number(fusion, i, std::get<ScalarRecord>(record).dtype, out[i]);
  }
  return out;
}

ir::Device place_of(const at::Tensor& tensor) {
  const auto index = static_cast<std::int16_t>(tensor.device().index());
  if (tensor.is_cpu()) return {};
  return {tensor.is_cuda() ? ir::DeviceKind::Cuda : tensor.is_meta() ? ir::DeviceKind::Meta : ir::DeviceKind::Other, index};
}

/// Where the inputs are: the first tensor that is not on the CPU.
ir::Device home_of(std::span<const c10::IValue> inputs) {
  for (const c10::IValue& input : inputs) {
    if (input.isTensor() && !input.toTensor().is_cpu()) return place_of(input.toTensor());
  }
  return {};
}

void print_definition(const OpSource& ops, const Fusion& fusion) {
  const std::string text = python_text(fusion.records(), ops, fmt::format("nvfuser_fusion_id{}", fusion.id())) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Numbers come back as tensors of no dims.
c10::IValue as_tensor(c10::IValue value) {
  if (!value.isScalar()) return value;
  const c10::ScalarType type = value.isDouble() ? c10::ScalarType::Double : value.isInt() ? c10::ScalarType::Long : value.isBool() ? c10::ScalarType::Bool : c10::ScalarType::ComplexDouble;
  return at::scalar_tensor(value.toScalar(), at::TensorOptions().dtype(type));
}

}  // namespace

std::vector<c10::IValue> run_fusion(Service& service, const OpSource& ops, Fusion& fusion, std::span<const c10::IValue> inputs, const RunArguments& arguments,
                                    std::vector<std::string>* warnings) {
  FXF_CHECK(fusion.output_count() > 0, NotImplemented, "Fusion is empty! The definition has no output");
  const std::vector<c10::IValue> values = checked(fusion, inputs);
  const ir::Device device = arguments.device.value_or(home_of(values));
  const std::shared_ptr<Program> program = fusion.program(device, [&] {
    if (arguments.options.dump.count("python_definition") > 0) print_definition(ops, fusion);
    Replayed replayed = replay(fusion.records(), ops, device, fmt::format("fusion_{}", fusion.id()));
    return service.import({std::move(replayed.graph), std::move(replayed.alias)});
  });
  const at::NoGradGuard no_grad;
  std::vector<c10::IValue> outputs;
  if (arguments.aten) {
    program->run_aten(values, outputs);
  } else {
    executor::Options options = arguments.options;
    options.dump.erase("python_definition");  // told above, as it was written
    RunResult result = program->run(options, values, outputs);
    if (result.status == RunStatus::RunOriginal) {
      result.warnings.push_back("the fusion runs op by op, fallback to aten executor: " + result.reason);
      program->run_aten(values, outputs);
    }
    if (warnings != nullptr) *warnings = std::move(result.warnings);
  }
  for (c10::IValue& output : outputs) output = as_tensor(std::move(output));
  return outputs;
}

std::string graph_text(const OpSource& ops, const Fusion& fusion) {
  return ir::print(replay(fusion.records(), ops, ir::Device{}, fmt::format("fusion_{}", fusion.id())).graph);
}

}  // namespace fxfuser::frontend
