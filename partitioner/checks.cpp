#include "partitioner/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "partitioner/ir/op_table.h"

namespace fxfuser::partitioner {
namespace {

constexpr std::string_view kTrainingFlags[] = {"training", "train", "use_input_stats"};

bool has_param(const ir::Node& node, std::string_view param) {
  return node.row != nullptr && std::find(node.row->params.begin(), node.row->params.end(), param) != node.row->params.end();
}

/// A parameter's value; None where the row has no such parameter.
const ir::Attr& get(const ir::Node& node, std::string_view param) {
  static const ir::Attr none;
  return has_param(node, param) ? ir::arg(node, param) : none;
}

bool is_false(const ir::Attr& attr) {
  if (attr.is_none()) return true;
  return attr.is_number() && !std::holds_alternative<std::complex<double>>(attr.v) && attr.as_double() == 0;
}

std::optional<ir::TensorMeta> first_tensor(const ir::Graph& graph, const ir::Node& node) {
  std::optional<ir::TensorMeta> meta;
  ir::for_each_value(node.args, [&](ir::ValueId value) {
    if (!meta && graph.values[value].kind == ir::ValueKind::Tensor) meta = graph.values[value].meta;
  });
  return meta;
}

std::optional<ir::DType> dtype_of(const ir::Graph& graph, const ir::Attr& attr) {
  if (!attr.is_value()) return std::nullopt;
  const ir::Value& value = graph.values[attr.value()];
  return value.meta ? std::optional(value.meta->dtype) : std::nullopt;
}

Support refuse(std::string detail) { return Support::no(ReasonCode::Argument, std::move(detail)); }

/// The pair itself is asked of the policy for every Cast row; here: both ends are known.
Support cast_pair(const ir::Graph& graph, const ir::Node& node) {
  const auto from = first_tensor(graph, node);
  const bool known = !node.outputs.empty() && graph.values[node.outputs[0]].meta.has_value();
  if (from && known) return Support::yes();
  return Support::no(ReasonCode::Layout, "a cast between dtypes that are not known");
}

Support same_device(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& device = get(node, "device");
  const auto self = first_tensor(graph, node);
  if (device.is_none() || !self) return Support::yes();
  const auto* to = std::get_if<ir::Device>(&device.v);
  if (to != nullptr && to->kind == self->device.kind && (to->index < 0 || to->index == self->device.index)) return Support::yes();
  return Support::no(ReasonCode::Device, "moves a tensor to another device");
}

Support default_memory_format(const ir::Graph&, const ir::Node& node) {
  const ir::Attr& format = get(node, "memory_format");
  if (format.is_none() || format == ir::Attr(ir::MemoryFormat::Preserve)) return Support::yes();
  return refuse("a memory_format other than preserve_format");
}

Support contiguous_format(const ir::Graph&, const ir::Node& node) {
  const ir::Attr& format = get(node, "memory_format");
  if (format.is_none() || format == ir::Attr(ir::MemoryFormat::Contiguous)) return Support::yes();
  return refuse("a memory_format other than contiguous_format");
}

/// A copy can have any layout that its rank has.
Support format_of_rank(const ir::Graph& graph, const ir::Node& node) {
  const auto* format = std::get_if<ir::MemoryFormat>(&get(node, "memory_format").v);
  const auto self = first_tensor(graph, node);
  if (format == nullptr || !self) return Support::yes();
  const std::int64_t needed = *format == ir::MemoryFormat::ChannelsLast ? 4 : *format == ir::MemoryFormat::ChannelsLast3d ? 5 : self->rank();
  if (self->rank() == needed) return Support::yes();
  return refuse(fmt::format("a memory_format that needs rank {}", needed));
}

Support no_training(const ir::Graph&, const ir::Node& node) {
  for (const std::string_view flag : kTrainingFlags) {
    if (has_param(node, flag) && !is_false(get(node, flag))) return refuse(fmt::format("{} is not False", flag));
  }
  return Support::yes();
}

Support supported_ord(const ir::Graph&, const ir::Node& node) {
  const ir::Attr& ord = get(node, has_param(node, "ord") ? "ord" : "p");
  if (ord.is_none()) return Support::yes();  // 2
  if (ord.is_number() && !std::holds_alternative<std::complex<double>>(ord.v)) {
    const double order = ord.as_double();
    if (order == 0 || order == 1 || order == 2 || std::isinf(order)) return Support::yes();
    return refuse(fmt::format("a norm of order {}; supported are 0, 1, 2, inf and -inf", order));
  }
  return refuse("a norm whose order is no number");
}

Support single_index(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& indices = get(node, "indices");
  if (!indices.is_list()) return refuse("indices is not a list");
  std::optional<ir::DType> dtype;
  int count = 0;
  for (const ir::Attr& index : indices.list()) {
    if (index.is_none()) continue;
    ++count;
    dtype = dtype_of(graph, index);
  }
  if (count != 1) return refuse(fmt::format("{} index tensors; supported is one", count));
  if (dtype && *dtype != ir::DType::Int64 && *dtype != ir::DType::Int32) {
    return refuse(fmt::format("an index of {}; supported are int64 and int32", ir::name(*dtype)));
  }
  return Support::yes();
}

Support known_padding_mode(const ir::Graph&, const ir::Node& node) {
  const ir::Attr& mode = get(node, "mode");
  if (mode.is_none() || mode == ir::Attr("constant")) return Support::yes();
  return refuse("a padding mode other than constant");
}

Support no_negative_exponent(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& exponent = get(node, has_param(node, "exponent") ? "exponent" : "other");
  if (!exponent.is_number() || std::holds_alternative<std::complex<double>>(exponent.v)) return Support::yes();
  const auto base = first_tensor(graph, node);
  if (!base || ir::is_floating(base->dtype) || std::holds_alternative<double>(exponent.v)) return Support::yes();
  if (exponent.as_double() >= 0) return Support::yes();
  return refuse("an integer to a negative power");
}

Support float_only_when_no_dtype(const ir::Graph& graph, const ir::Node& node) {
  const auto self = first_tensor(graph, node);
  if (!get(node, "dtype").is_none() || !self || ir::is_floating(self->dtype)) return Support::yes();
  return Support::no(ReasonCode::DType, fmt::format("{} without a floating dtype to compute in", ir::name(self->dtype)));
}

Support no_rounding_mode_other(const ir::Graph&, const ir::Node& node) {
  const ir::Attr& mode = get(node, "rounding_mode");
  if (mode.is_none() || mode == ir::Attr("floor") || mode == ir::Attr("trunc")) return Support::yes();
  return refuse("a rounding_mode other than None, 'floor' and 'trunc'");
}

Support no_dtype(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& dtype = get(node, "dtype");
  const auto self = first_tensor(graph, node);
  if (dtype.is_none() || (self && dtype == ir::Attr(self->dtype))) return Support::yes();
  return refuse("a dtype other than the input's");
}

}  // namespace

const std::vector<std::pair<std::string_view, CheckFunction>>& builtin_checks() {
  static const std::vector<std::pair<std::string_view, CheckFunction>> checks = {
      {"cast_pair", cast_pair},
      {"contiguous_format", contiguous_format},
      {"default_memory_format", default_memory_format},
      {"float_only_when_no_dtype", float_only_when_no_dtype},
      {"format_of_rank", format_of_rank},
      {"known_padding_mode", known_padding_mode},
      {"no_dtype", no_dtype},
      {"no_negative_exponent", no_negative_exponent},
      {"no_rounding_mode_other", no_rounding_mode_other},
      {"no_training", no_training},
      {"same_device", same_device},
      {"single_index", single_index},
      {"supported_ord", supported_ord},
  };
  return checks;
}

bool has_hidden_writes(const ir::Node& node) {
  if (node.row == nullptr || node.row->writes.empty()) return false;
  bool flagged = false;
  for (const std::string_view flag : kTrainingFlags) {
    if (!has_param(node, flag)) continue;
    flagged = true;
    if (!is_false(ir::arg(node, flag))) break;
    return false;
  }
  // A statistic that is not given can't be written.
  return !flagged || std::any_of(node.row->writes.begin(), node.row->writes.end(),
                                 [&](const std::string& param) { return !get(node, param).is_none(); });
}

bool is_default_argument(const ir::Attr& attr, const ir::Device& device) {
  if (attr.is_none()) return true;
  if (const auto* flag = std::get_if<bool>(&attr.v)) return !*flag;
  if (const auto* format = std::get_if<ir::MemoryFormat>(&attr.v)) return *format == ir::MemoryFormat::Preserve;
  if (const auto* layout = std::get_if<ir::Layout>(&attr.v)) return *layout == ir::Layout::Strided;
  if (const auto* to = std::get_if<ir::Device>(&attr.v)) {
    return to->kind == device.kind && (to->index < 0 || to->index == device.index);
  }
  return attr.is_list() && attr.list().empty();
}

}  // namespace fxfuser::partitioner
