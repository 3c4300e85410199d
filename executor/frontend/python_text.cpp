#include "executor/frontend/python_text.h"

#include <fmt/ranges.h>

#include <cmath>

#include "partitioner/ir/error.h"

namespace fxfuser::frontend {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "float('nan')";
  if (std::isinf(value)) return value > 0 ? "float('inf')" : "float('-inf')";
  std::string text = fmt::format("{}", value);  // the shortest that reads back the same
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string string_text(const std::string& value) {
  std::string out = "'";
  for (const char letter : value) {
    if (letter == '\'' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + "'";
}

std::string flag_text(bool value) { return value ? "True" : "False"; }
std::string sizes_text(const ir::Sizes& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

std::string contiguity_text(const std::vector<std::int8_t>& contiguity) {
  std::vector<std::string> words;
  for (const std::int8_t flag : contiguity) words.push_back(flag < 0 ? "None" : flag_text(flag != 0));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

class Printer {
 public:
  Printer(const OpSource& ops, std::string& out) : ops_(ops), out_(out) {}

  void operator()(const TensorRecord& record) {
    std::string line = record.static_sizes ? fmt::format("shape={}, contiguity={}", sizes_text(record.sizes), contiguity_text(record.contiguity))
                                           : fmt::format("symbolic_sizes={}, contiguous={}", sizes_text(record.sizes), contiguity_text(record.contiguity));
    line += fmt::format(", dtype={}, is_cpu={}", dtype_text(record.dtype), flag_text(record.is_cpu));
    if (!record.stride_order.empty()) line += ", stride_order=" + sizes_text(record.stride_order);
    if (record.static_sizes) line += ", static_sizes=True";
    put(facts_of(record), fmt::format("define_tensor({})", line));
  }
  void operator()(const ScalarRecord& record) { put(facts_of(record), fmt::format("define_scalar(dtype={})", dtype_text(record.dtype))); }
  void operator()(const ConstantRecord& record) {
    if (record.value.is_none()) put(facts_of(record), "define_null_tensor()");
    else put(facts_of(record), fmt::format("define_constant({}, dtype={})", python_text(record.value), dtype_text(*record.dtype)));
  }
  void operator()(const OpRecord& record) {
    const FactsOf facts = [this](ir::ValueId id) { return values_.at(id); };
    const OpSignature* op = ops_.find(record.op);
    std::string list;
    bool skipped = false;
    for (std::size_t i = 0; i < record.args.size(); ++i) {
      const SignatureParam* param = op != nullptr && i < op->params.size() ? &op->params[i] : nullptr;
      if (param != nullptr && param->fallback && is_same(*param->fallback, record.args[i])) {
        skipped = true;
        continue;
      }
      list += (list.empty() ? "" : ", ") + (skipped && param != nullptr ? param->name + "=" : "") + python_text(record.args[i], facts);
    }
    put(record.outputs, fmt::format("ops.{}({})", record.op, list), op != nullptr && op->returns_list);
  }
  void operator()(const OutputRecord& record) {
    std::string line = name(record.value);
    if (record.alias != ir::kNoValue) line += ", alias_input=" + name(record.alias);
    if (!record.stride_order.empty()) line += ", stride_order=" + sizes_text(record.stride_order);
    out_ += fmt::format("    fd.add_output({})\n", line);
  }

 private:
  static std::string dtype_text(ir::DType dtype) { return "DataType." + data_type_name(dtype); }
  std::string name(ir::ValueId id) const { return value_name(id, values_.at(id).kind); }

  void put(const std::vector<Facts>& made, const std::string& call, bool list = false) {
    std::vector<std::string> names;
    for (const Facts& facts : made) {
      values_.push_back(facts);
      names.push_back(name(static_cast<ir::ValueId>(values_.size() - 1)));
    }
    const std::string left = names.size() == 1 && !list ? names[0] : fmt::format("[{}]", fmt::join(names, ", "));
    out_ += fmt::format("    {} = fd.{}\n", left, call);
  }

  const OpSource& ops_;
  std::string& out_;
  std::vector<Facts> values_;
};

}  // namespace

const std::vector<std::pair<std::string, ir::DType>>& data_types() {
  static const std::vector<std::pair<std::string, ir::DType>> table = {
      {"Double", ir::DType::Float64},        {"Float", ir::DType::Float32},         {"Half", ir::DType::Float16},
      {"BFloat16", ir::DType::BFloat16},     {"Int", ir::DType::Int64},             {"Int32", ir::DType::Int32},
      {"Bool", ir::DType::Bool},             {"ComplexFloat", ir::DType::Complex64}, {"ComplexDouble", ir::DType::Complex128},
      {"Int16", ir::DType::Int16},           {"Int8", ir::DType::Int8},             {"UInt8", ir::DType::UInt8},
      {"Float8_e4m3fn", ir::DType::Float8E4M3}, {"Float8_e5m2", ir::DType::Float8E5M2}, {"Null", ir::DType::Other},
  };
  return table;
}

std::string data_type_name(ir::DType dtype) {
  for (const auto& [name, type] : data_types()) {
    if (type == dtype) return name;
  }
  return "Null";
}

std::string value_name(ir::ValueId id, ir::ValueKind kind) { return fmt::format("{}{}", kind == ir::ValueKind::Scalar ? 'S' : 'T', id); }

std::string python_text(const ir::Attr& attr, const FactsOf& facts) {
  if (attr.is_none()) return "None";
  if (const auto* value = std::get_if<bool>(&attr.v)) return flag_text(*value);
  if (const auto* value = std::get_if<std::int64_t>(&attr.v)) return fmt::format("{}", *value);
  if (const auto* value = std::get_if<double>(&attr.v)) return number_text(*value);
  if (const auto* value = std::get_if<std::complex<double>>(&attr.v)) return fmt::format("complex({}, {})", number_text(value->real()), number_text(value->imag()));
  if (const auto* value = std::get_if<std::string>(&attr.v)) return string_text(*value);
  if (const auto* value = std::get_if<ir::DType>(&attr.v)) return "DataType." + data_type_name(*value);
  if (attr.is_value()) return value_name(attr.value(), facts ? facts(attr.value()).kind : ir::ValueKind::Tensor);
  if (attr.is_list()) {
    std::vector<std::string> items;
    for (const ir::Attr& item : attr.list()) items.push_back(python_text(item, facts));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  if (const auto* value = std::get_if<ir::Device>(&attr.v)) return fmt::format("torch.device('{}')", ir::to_string(*value));
  return "...";
}

std::string python_text(const std::vector<Record>& records, const OpSource& ops, const std::string& function) {
  std::string out = fmt::format("def {}(fd : FusionDefinition) -> None :\n", function);
  if (records.empty()) return out + "    pass\n";
  Printer printer(ops, out);
  for (const Record& record : records) std::visit(printer, record);
  return out;
}

}  // namespace fxfuser::frontend
