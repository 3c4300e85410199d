// Checks that belong to one family of rows each.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "partitioner/checks.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::partitioner {
namespace {

const ir::Attr& get(const ir::Node& node, std::string_view param) {
  static const ir::Attr none;
  const auto& params = node.row->params;
  return std::find(params.begin(), params.end(), param) == params.end() ? none : ir::arg(node, param);
}

std::optional<ir::TensorMeta> meta_of(const ir::Graph& graph, const ir::Attr& attr) {
  return attr.is_value() ? graph.value(attr.value()).meta : std::nullopt;
}

Support refuse(std::string detail) {
  return Support::no(ReasonCode::Argument, std::move(detail));
}

/// The largest number that a dtype holds.
double largest(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::UInt8: return 255;
    case ir::DType::Int8: return 127;
    case ir::DType::Int16: return 32767;
    case ir::DType::Int32: return 2147483647.0;
    case ir::DType::Float16: return 65504;
    case ir::DType::BFloat16: return 3.3895313892515355e38;
    case ir::DType::Float32: return static_cast<double>(std::numeric_limits<float>::max());
    default: return std::numeric_limits<double>::max();
  }
}

bool all_integers(const ir::Graph& graph, const ir::Node& node) {
  for (const std::string& param : {std::string("self"), std::string("other")}) {
    const ir::Attr& attr = get(node, param);
    if (std::holds_alternative<double>(attr.v)) return false;
    const auto meta = meta_of(graph, attr);
    if (meta && ir::is_floating(meta->dtype)) return false;
  }
  return true;
}

/// Eager raises on an integer division by zero on the CPU; a kernel can't.
Support int_divisor(const ir::Graph& graph, const ir::Node& node) {
  if (!all_integers(graph, node)) return Support::yes();
  const ir::Attr& mode = get(node, "rounding_mode");
  if (node.row->op == "div_mode" && mode.is_none()) return Support::yes();
  const ir::Attr& other = get(node, "other");
  if (other.is_number() && other.as_double() != 0) return Support::yes();
  const auto meta = meta_of(graph, get(node, "self"));
  if (meta && meta->device.kind == ir::DeviceKind::Cuda) return Support::yes();
  return refuse("an integer division whose divisor may be 0, where eager raises");
}

/// Eager raises where a number is beyond the dtype that it is converted to, or is a bool beside tensors that are not.
Support held_numbers(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr* first = &node.args.front();
  if (first->is_list() && !first->list().empty()) first = &first->list().front();
  const auto meta = meta_of(graph, *first);
  if (!meta) return Support::yes();
  for (const std::string& param : node.row->params) {
    const ir::Attr& number = get(node, param);
    if (!number.is_number() || meta->dtype == ir::DType::Bool) continue;
    const bool real = std::holds_alternative<double>(number.v);
    if (std::holds_alternative<bool>(number.v)) return refuse(fmt::format("{} is a bool", param));
    const double value = number.as_double(), most = largest(real && !ir::is_floating(meta->dtype) ? ir::DType::Float32 : meta->dtype);
    if (std::isfinite(value) && std::abs(value) > most) return refuse(fmt::format("{} = {} is more than {} holds", param, value, ir::name(meta->dtype)));
    if (value < 0 && meta->dtype == ir::DType::UInt8 && !real) return refuse(fmt::format("{} = {} is less than uint8 holds", param, value));
  }
  return Support::yes();
}

Support full_precision(const ir::Graph& graph, const ir::Node& node) {
  const auto meta = meta_of(graph, get(node, "self"));
  if (!meta || !ir::is_reduced_float(meta->dtype)) return Support::yes();
  return Support::no(ReasonCode::DType,
                     fmt::format("{} steps in {} units, kernels compute in float32", node.row->op, ir::name(meta->dtype)));
}

Support not_uint8(const ir::Graph& graph, const ir::Node& node) {
  const auto meta = meta_of(graph, get(node, "self"));
  return meta && meta->dtype == ir::DType::UInt8 ? Support::no(ReasonCode::DType, "the result of uint8 is uint8, not bool")
                                                 : Support::yes();
}

Support nonempty_dim(const ir::Graph& graph, const ir::Node& node) {
  const auto meta = meta_of(graph, get(node, "self"));
  return meta && meta->numel() == 0 ? refuse("nothing to choose from, where eager raises") : Support::yes();
}

Support no_weight(const ir::Graph&, const ir::Node& node) {
  return get(node, "weight").is_none() ? Support::yes() : refuse("class weights");
}

Support float_self(const ir::Graph& graph, const ir::Node& node) {
  const auto meta = meta_of(graph, get(node, "self"));
  return meta && ir::is_floating(meta->dtype) ? Support::yes()
                                              : Support::no(ReasonCode::DType, "the scores are not floating");
}

Support class_indices(const ir::Graph& graph, const ir::Node& node) {
  const auto target = meta_of(graph, get(node, "target")), self = meta_of(graph, get(node, "self"));
  if (target && !ir::is_integral(target->dtype)) return refuse("targets that are probabilities");
  if (self && self->sizes.size() > 2) return refuse("scores with more than a batch and a class dim");
  const ir::Attr& smoothing = get(node, "label_smoothing");
  return smoothing.is_none() || smoothing.as_double() == 0 ? Support::yes() : refuse("label smoothing");
}

Support plain_scores(const ir::Graph& graph, const ir::Node& node) {
  const auto self = meta_of(graph, get(node, "self"));
  return self && self->sizes.size() > 2 ? refuse("scores with more than a batch and a class dim") : Support::yes();
}

Support integer_range(const ir::Graph&, const ir::Node& node) {
  for (const char* param : {"start", "end", "step"}) {
    const ir::Attr& attr = get(node, param);
    if (!attr.is_none() && !std::holds_alternative<std::int64_t>(attr.v))
      return refuse("a range of floats or of sizes known at the call");
  }
  return Support::yes();
}

Support no_half_to_float(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& flag = get(node, "half_to_float");
  if (!flag.is_none() && flag.as_bool()) return refuse("half_to_float");
  const auto* dtype = std::get_if<ir::DType>(&get(node, "dtype").v);
  (void)graph;
  return dtype == nullptr || ir::is_floating(*dtype) ? Support::yes() : refuse("a dtype that is not floating");
}

Support same_input_dtype(const ir::Graph& graph, const ir::Node& node) {
  const auto grad = meta_of(graph, get(node, "grad"));
  const auto* dtype = std::get_if<ir::DType>(&get(node, "input_dtype").v);
  return !grad || dtype == nullptr || *dtype == grad->dtype ? Support::yes()
                                                            : refuse("an input dtype other than the gradient's");
}

Support has_channels(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& input = get(node, "input");
  const auto& meta = input.is_value() ? graph.value(input.value()).meta : std::nullopt;
  return !meta || meta->sizes.size() >= 2 ? Support::yes() : refuse("an input without a dim of channels");
}

Support training_only(const ir::Graph&, const ir::Node& node) {
  return get(node, "training").is_none() || get(node, "training").as_bool() ? Support::yes()
                                                                            : refuse("no running statistics in inference");
}

/// Eager keeps channels-last where the input has it; these rows give plain strides.
Support plain_layout(const ir::Graph& graph, const ir::Node& node) {
  Support verdict;
  ir::for_each_value(node.args, [&](ir::ValueId id) {
    const auto& meta = graph.value(id).meta;
    if (!meta || meta->sizes.size() < 4 || ir::is_contiguous(*meta)) return;
    if (meta->strides[1] == 1) verdict = Support::no(ReasonCode::Layout, "a channels-last input");
  });
  return verdict;
}

/// Whether the strides fall from left to right, but for dims that hold one element and for `skipped`; eager's results are
/// then plain.
bool falling(const ir::TensorMeta& meta, std::size_t skipped) {
  std::int64_t above = std::numeric_limits<std::int64_t>::max();
  for (std::size_t dim = 0; dim < meta.sizes.size(); ++dim) {
    if (dim == skipped || meta.sizes[dim] == 1 || meta.strides[dim] == 0) continue;
    if (meta.strides[dim] > above) return false;
    above = meta.strides[dim];
  }
  return true;
}

/// Eager's reads by an index keep the order in memory of the dims that are not indexed, and of the index.
Support falling_reads(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& indices = get(node, "indices");
  if (!indices.is_list()) return Support::yes();
  std::size_t dim = 0;
  while (dim < indices.list().size() && indices.list()[dim].is_none()) ++dim;
  const auto self = meta_of(graph, get(node, "self"));
  if (self && !falling(*self, dim)) return Support::no(ReasonCode::Layout, "a permuted input, whose order eager keeps");
  if (dim == indices.list().size()) return Support::yes();
  const auto index = meta_of(graph, indices.list()[dim]);
  return index && !falling(*index, index->sizes.size())
             ? Support::no(ReasonCode::Layout, "a permuted index, whose order eager keeps")
             : Support::yes();
}

/// Where nothing is added eager clones a part of its input, with the strides that a clone has.
Support adds_padding(const ir::Graph& graph, const ir::Node& node) {
  const ir::Attr& widths = get(node, "pad");
  const auto self = meta_of(graph, get(node, "self"));
  if (!widths.is_list() || !self || ir::is_contiguous(*self)) return Support::yes();
  for (const ir::Attr& width : widths.list()) {
    const auto* number = std::get_if<std::int64_t>(&width.v);
    if (number == nullptr || *number > 0) return Support::yes();
  }
  return Support::no(ReasonCode::Layout, "nothing is added to an input that is not contiguous");
}

/// An empty list of dims is all dims to other reductions; to these it is none.
Support some_dims(const ir::Graph&, const ir::Node& node) {
  const ir::Attr& dims = get(node, "dims");
  return dims.is_list() && dims.list().empty() ? refuse("an empty list of dims, which reduces nothing") : Support::yes();
}

Support input_stats(const ir::Graph&, const ir::Node& node) {
  const ir::Attr& flag = get(node, "use_input_stats");
  if (!flag.is_none() && !flag.as_bool()) return refuse("running statistics");
  return get(node, "running_mean").is_none() ? Support::yes() : refuse("running statistics");
}

Support random_stream(const ir::Graph&, const ir::Node&) {
  return refuse("numbers are drawn from eager's own stream");
}

Support complex_only(const ir::Graph&, const ir::Node&) {
  return Support::no(ReasonCode::DType, "works on complex numbers");
}

/// Numbers for which eager raises; NaN is among them where a comparison would have to hold.
Support eager_takes_numbers(const ir::Graph&, const ir::Node& node) {
  struct Bound {
    std::string_view op, param;
    bool (*allows)(double);
    std::string_view text;
  };
  static constexpr Bound bounds[] = {
      {"celu", "alpha", [](double v) { return v != 0; }, "not 0"},
      {"huber_loss", "delta", [](double v) { return v > 0; }, "above 0"},
      {"smooth_l1_loss", "beta", [](double v) { return v >= 0; }, "at least 0"},
      {"softshrink", "lambd", [](double v) { return v >= 0; }, "at least 0"},
  };
  for (const Bound& bound : bounds) {
    const ir::Attr& number = bound.op == node.row->op ? get(node, bound.param) : ir::Attr();
    if (number.is_none() || (number.is_number() && bound.allows(number.as_double()))) continue;
    return refuse(number.is_number() ? fmt::format("{} is {}; eager asks that it is {}", bound.param, number.as_double(), bound.text)
                                     : fmt::format("{} is not known, and eager asks that it is {}", bound.param, bound.text));
  }
  return Support::yes();
}

Support not_is_result(const ir::Graph&, const ir::Node& node) {
  return get(node, "is_result").is_none() || !get(node, "is_result").as_bool() ? Support::yes() : refuse("is_result");
}

}  // namespace

const std::vector<std::pair<std::string_view, CheckFunction>>& row_checks() {
  static const std::vector<std::pair<std::string_view, CheckFunction>> checks = {
      {"adds_padding", adds_padding},
      {"class_indices", class_indices},
      {"complex_only", complex_only},
      {"eager_takes_numbers", eager_takes_numbers},
      {"falling_reads", falling_reads},
      {"float_self", float_self},
      {"full_precision", full_precision},
      {"has_channels", has_channels},
      {"held_numbers", held_numbers},
      {"input_stats", input_stats},
      {"int_divisor", int_divisor},
      {"integer_range", integer_range},
      {"no_half_to_float", no_half_to_float},
      {"no_weight", no_weight},
      {"nonempty_dim", nonempty_dim},
      {"not_is_result", not_is_result},
      {"not_uint8", not_uint8},
      {"plain_layout", plain_layout},
      {"plain_scores", plain_scores},
      {"random_stream", random_stream},
      {"same_input_dtype", same_input_dtype},
      {"some_dims", some_dims},
      {"training_only", training_only},
  };
  return checks;
}

}  // namespace fxfuser::partitioner
