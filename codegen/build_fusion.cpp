#include "codegen/build_fusion.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/fusion_builder.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/infer.h"

namespace fxfuser::codegen {
namespace {

constexpr std::size_t kMaxAxes = 62;
constexpr std::size_t kMaxBody = 512;

struct NeedsSplit {
  Split split;
};

std::uint64_t axes_in(const Map& map) {
  std::uint64_t mask = 0;
  for (const Affine& form : map) {
    for (std::size_t axis = 0; axis < form.coeff.size(); ++axis) {
      if (form.coeff[axis] != 0) mask |= std::uint64_t{1} << axis;
    }
  }
  return mask;
}

}  // namespace

void refuse_shape(std::string detail) { throw Refused{{partitioner::ReasonCode::Shape, std::move(detail)}}; }

FusionBuilder::FusionBuilder(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes, const std::vector<ir::ValueId>& outputs)
    : graph_(graph), nodes_(nodes), outputs_(outputs), inside_(nodes.begin(), nodes.end()) {}

bool FusionBuilder::inside(ir::ValueId value) const {
  const ir::NodeId producer = graph_.value(value).producer;
  return producer != ir::kNoNode && inside_.count(producer) > 0;
}

ir::ValueId FusionBuilder::choose_reference() const {
  if (stands_for_output_) return *stands_for_output_;
  ir::ValueId best = ir::kNoValue;
  const auto consider = [&](ir::ValueId value) {
    if (best == ir::kNoValue || graph_.meta(value).numel() > graph_.meta(best).numel()) best = value;
  };
  for (ir::ValueId output : outputs_) consider(output);
  for (ir::NodeId id : nodes_) {
    const ir::Node& node = graph_.node(id);
    if (node.row->kind == ir::OpKind::Reduction) consider(ir::arg(node, "self").value());
  }
  return best;
}

void FusionBuilder::set_domain() {
  axes_.clear();
  reference_map_.clear();
  reference_ = choose_reference();
  const ir::Sizes& sizes = graph_.meta(reference_).sizes;
  for (std::int64_t size : sizes) {
    if (size != 1) axes_.push_back({size, false});
  }
  std::size_t axis = 0;
  for (std::int64_t size : sizes) {
    reference_map_.push_back(constant(axis_count(), 0));
    if (size != 1) reference_map_.back().coeff[axis++] = 1;
  }
}

Fusion FusionBuilder::run() {
  if (outputs_.empty()) refuse_shape("nothing to store");
  try {
    build();
  } catch (const Refused&) {
    stands_for_output_ = reshaped_output();
    if (!stands_for_output_) throw;
    build();
  }
  analyze(fusion_);
  collapse(fusion_);
  analyze(fusion_);
  return std::move(fusion_);
}

void FusionBuilder::build() {
  set_domain();
  for (;;) {
    if (axes_.size() > kMaxAxes) refuse_shape("too many dims");
    try {
      build_once();
      break;
    } catch (const NeedsSplit& needed) {
      const auto [axis, inner] = needed.split;
      for (Affine& form : reference_map_) split_form(form, axis, inner);
      axes_[axis].size /= inner;
      axes_.insert(axes_.begin() + static_cast<std::ptrdiff_t>(axis) + 1, {inner, false});
    }
  }
}

void FusionBuilder::build_once() {
  fusion_ = Fusion{};
  fusion_.axes = axes_;
  fusion_.device = graph_.meta(reference_).device;
  for (ir::ValueId output : outputs_) {
    if (graph_.meta(output).device.kind != ir::DeviceKind::Cpu) fusion_.device = graph_.meta(output).device;
  }
  reduced_ = 0;
  reduces_ = false;
  asked_.clear();
  anchors_.clear();
  input_ids_.clear();
  guards_.clear();
  anchors_[reference_] = reference_map_;
  if (stands_for_output_) anchors_[outputs_[0]] = reference_map_;
  // The reference's own outputs first, then those that follow from what was asked for.
  std::vector<ir::ValueId> rest = outputs_;
  std::stable_sort(rest.begin(), rest.end(), [&](ir::ValueId a, ir::ValueId b) { return graph_.meta(a).numel() > graph_.meta(b).numel(); });
  while (!rest.empty()) {
    spread_anchors();
    auto next = std::find_if(rest.begin(), rest.end(), [&](ir::ValueId value) { return anchors_.count(value) > 0; });
    if (next == rest.end()) {
      const ir::ValueId value = rest.front();
      if (graph_.meta(value).sizes != graph_.meta(reference_).sizes) refuse_shape("outputs of unrelated shapes");
      anchors_[value] = reference_map_;
      next = rest.begin();
    }
    const ir::ValueId value = *next;
    rest.erase(next);
    place_output(value);
  }
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) fusion_.axes[axis].reduced = ((reduced_ >> axis) & 1) != 0;
  std::sort(fusion_.outputs.begin(), fusion_.outputs.end(), [](const FusionOutput& a, const FusionOutput& b) { return a.value < b.value; });
  analyze(fusion_);
  check_columns();
  for (const FusionOutput& output : fusion_.outputs) check_output(output, anchors_.at(output.value));
}

std::uint32_t FusionBuilder::push(Expr expr) {
  if (fusion_.body.size() >= kMaxBody) throw Refused{{partitioner::ReasonCode::NoSchedule, "too many expressions"}};
  fusion_.body.push_back(std::move(expr));
  return static_cast<std::uint32_t>(fusion_.body.size() - 1);
}

std::uint32_t FusionBuilder::demand(ir::ValueId value, const Map& map) {
  for (const Asked& asked : asked_[value]) {
    if (asked.map == map && asked.guards == guards_) return asked.expr;
  }
  if (guards_.empty()) anchors_.emplace(value, map);
  const std::uint32_t expr = make(value, map);
  asked_[value].push_back({map, guards_, expr});
  return expr;
}

std::uint32_t FusionBuilder::make(ir::ValueId value, const Map& map) {
  if (!inside(value)) return load(value, map);
  const ir::Node& node = graph_.node(graph_.value(value).producer);
  switch (node.row->kind) {
    case ir::OpKind::Pointwise: return pointwise(node, map);
    case ir::OpKind::Cast: return cast(node, map);
    case ir::OpKind::Reduction: return reduction(node, graph_.value(value).output, map);
    case ir::OpKind::View: return view(node, map);
    case ir::OpKind::Position: return position(node, map);
    case ir::OpKind::Indexed: return indexed(node, map);
    case ir::OpKind::Factory: return factory(node, map);
    case ir::OpKind::Composite: break;
  }
  throw_error(ErrorKind::Internal, fmt::format("{} is not canonical", node.name));
}

std::uint32_t FusionBuilder::input_of(ir::ValueId value) {
  const auto [found, fresh] = input_ids_.emplace(value, static_cast<std::uint32_t>(fusion_.inputs.size()));
  if (fresh) {
    const ir::Value& info = graph_.value(value);
    FusionInput input;
    input.value = value;
    input.meta = *info.meta;
    input.scalar = info.kind != ir::ValueKind::Tensor ||
                   (info.meta->sizes.empty() && info.meta->device.kind == ir::DeviceKind::Cpu && fusion_.device.kind != ir::DeviceKind::Cpu);
    fusion_.inputs.push_back(std::move(input));
  }
  return found->second;
}

std::uint32_t FusionBuilder::load(ir::ValueId value, const Map& map) {
  Expr expr;
  expr.input = input_of(value);
  const FusionInput& input = fusion_.inputs[expr.input];
  if (!input.scalar && input.meta.device != fusion_.device) refuse_shape("inputs on several devices");
  expr.dtype = input.meta.dtype;
  expr.kind = input.scalar ? ExprKind::Scalar : ExprKind::Load;
  expr.note = graph_.value(value).name;
  if (expr.kind == ExprKind::Load) {
    expr.form = dot(map, input.meta.strides, axis_count());
    expr.bounds = guards_;
  }
  return push(std::move(expr));
}

std::uint32_t FusionBuilder::number(const ir::Attr& value, DType dtype) {
  Expr expr;
  expr.kind = ExprKind::Number;
  expr.dtype = dtype;
  expr.number = value;
  return push(std::move(expr));
}

std::uint32_t FusionBuilder::converted(std::uint32_t id, DType dtype) {
  if (fusion_.body[id].dtype == dtype) return id;
  Expr expr;
  expr.kind = ExprKind::Cast;
  expr.dtype = dtype;
  expr.operands = {id};
  return push(std::move(expr));
}

bool FusionBuilder::is_exact(const ir::OpRow& row, const std::string& param, const ir::Attr& operand) const {
  const bool host = fusion_.device.kind == ir::DeviceKind::Cpu;
  const auto& names = host ? row.exact.host : row.exact.cuda;
  if (std::find(names.begin(), names.end(), param) == names.end()) return false;
  if (!operand.is_value() || graph_.value(operand.value()).kind != ir::ValueKind::Tensor) return true;
  const ir::TensorMeta& meta = graph_.meta(operand.value());
  return host ? meta.numel() == 1 : meta.sizes.empty() && meta.device.kind == ir::DeviceKind::Cpu;
}

std::uint32_t FusionBuilder::rounded(std::uint32_t id, DType dtype) {
  const DType from = fusion_.body[id].dtype;
  if (!ir::is_reduced_float(dtype) || from == dtype || from == DType::Bool || ir::itemsize(from) == 1) return id;
  Expr expr;
  expr.kind = ExprKind::Cast;
  expr.dtype = dtype;
  expr.rounds = true;
  expr.operands = {id};
  return push(std::move(expr));
}

std::uint32_t FusionBuilder::pointwise(const ir::Node& node, const Map& map) {
  const ir::Inferred inferred = ir::infer(graph_, node);
  Expr expr;
  expr.kind = ExprKind::Compute;
  expr.row = node.row;
  expr.dtype = inferred.outputs[0].dtype;
  expr.compute = inferred.compute;
  expr.note = node.name;
  for (const std::string& param : node.row->tensor_params) {
    const ir::Attr& operand = ir::arg(node, param);
    const bool exact = is_exact(*node.row, param, operand);
    if (!operand.is_value()) {
      expr.operands.push_back(number(operand, exact ? ir::compute_dtype(expr.compute) : expr.compute));
      continue;
    }
    const ir::Value& info = graph_.value(operand.value());
    const auto entered = [&](std::uint32_t id) { return exact ? id : rounded(id, expr.compute); };
    if (info.kind != ir::ValueKind::Tensor) {
      expr.operands.push_back(entered(demand(operand.value(), {})));
      continue;
    }
    const ir::Sizes& sizes = info.meta->sizes;
    Map operand_map(map.end() - static_cast<std::ptrdiff_t>(sizes.size()), map.end());
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 1) operand_map[d] = constant(axis_count(), 0);
    }
    expr.operands.push_back(entered(demand(operand.value(), operand_map)));
  }
  for (const std::string& param : node.row->params) {
    const auto& tensors = node.row->tensor_params;
    if (std::find(tensors.begin(), tensors.end(), param) == tensors.end()) expr.attrs.emplace_back(param, ir::arg(node, param));
  }
  return push(std::move(expr));
}

std::uint32_t FusionBuilder::cast(const ir::Node& node, const Map& map) {
  Expr expr;
  expr.kind = ExprKind::Cast;
  expr.dtype = graph_.meta(node.outputs[0]).dtype;
  expr.operands = {demand(ir::arg(node, "self").value(), map)};
  const ir::Attr& rounds = ir::arg(node, "rounds");
  expr.rounds = rounds.is_none() || rounds.as_bool();
  expr.note = node.name;
  return push(std::move(expr));
}

std::optional<Map> FusionBuilder::try_take_apart(const Affine& linear, const ir::Sizes& sizes) {
  Delinearized result = delinearize(linear, sizes, axes_);
  if (result.split) throw NeedsSplit{*result.split};
  return std::move(result.map);
}

Map FusionBuilder::take_apart(const Affine& linear, const ir::Sizes& sizes) {
  std::optional<Map> map = try_take_apart(linear, sizes);
  if (!map) refuse_shape("no common refinement of dims");
  return std::move(*map);
}

std::uint32_t FusionBuilder::reduction(const ir::Node& node, std::uint32_t output, const Map& map) {
  if (!guards_.empty()) refuse_shape("a reduction is read by position");
  const ir::ValueId self = ir::arg(node, "self").value();
  const ir::Sizes& sizes = graph_.meta(self).sizes;
  const ir::Attr& dims_attr = ir::arg(node, "dims");
  const ir::Sizes dims = dims_attr.as_sizes();
  std::vector<bool> folded(sizes.size(), dims_attr.is_none() || dims.empty());
  for (std::int64_t dim : dims) {
    if (!sizes.empty()) folded[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(sizes.size()) : dim)] = true;
  }
  const ir::Attr& keep = ir::arg(node, "keepdim");
  const bool keepdim = !keep.is_none() && keep.as_bool();

  const std::uint64_t used = axes_in(map) & long_axes();
  const bool columns = (used & reduced_) != 0;  // a fold over the kept axes, beside others over the reduced ones
  if (columns && used != reduced_) refuse_shape("a reduced value is needed along its own axis");
  Affine linear = constant(axis_count(), 0);
  std::uint64_t complement = 0;
  std::int64_t weight = 1;
  for (std::size_t axis = axis_count(); axis-- > 0;) {
    if (((used >> axis) & 1) != 0 || axes_[axis].size == 1) continue;
    complement |= std::uint64_t{1} << axis;
    linear.coeff[axis] = weight;
    weight *= axes_[axis].size;
  }
  ir::Sizes folded_sizes;
  std::int64_t folded_count = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (!folded[d]) continue;
    folded_sizes.push_back(sizes[d]);
    folded_count *= sizes[d];
  }
  if (folded_count != weight) refuse_shape("reduces over other axes");
  if (!columns && reduces_ && complement != reduced_) refuse_shape("reduces over other axes");
  const Map folded_map = take_apart(linear, folded_sizes);
  reduces_ = true;
  if (!columns) reduced_ = complement;

  Map operand_map;
  std::size_t at_kept = 0, at_folded = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (folded[d]) {
      operand_map.push_back(folded_map[at_folded++]);
      if (keepdim) ++at_kept;
    } else {
      operand_map.push_back(map[at_kept++]);
    }
  }
  Expr expr;
  expr.kind = ExprKind::Reduce;
  expr.row = node.row;
  expr.compute = ir::infer(graph_, node).compute;
  expr.dtype = graph_.meta(node.outputs[output]).dtype;
  expr.over = complement;
  expr.reduce_output = output;
  expr.note = node.name;
  expr.operands = {demand(self, operand_map)};
  if (node.row->arg_state) {
    Expr index;
    index.kind = ExprKind::Index;
    index.dtype = DType::Int64;
    index.form = dot(folded_map, ir::contiguous_strides(folded_sizes), axis_count());
    // The same position serves both results of one node.
    const auto same = std::find_if(fusion_.body.begin(), fusion_.body.end(), [&](const Expr& e) { return e.kind == ExprKind::Index && e.dtype == index.dtype && e.form == index.form; });
    expr.operands.push_back(same != fusion_.body.end() ? static_cast<std::uint32_t>(same - fusion_.body.begin()) : push(std::move(index)));
  }
  for (const std::string& param : node.row->params) {
    if (param != "self" && param != "dims" && param != "keepdim" && param != "dtype") expr.attrs.emplace_back(param, ir::arg(node, param));
  }
  return push(std::move(expr));
}

FusionOrReason build_fusion(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes, const std::vector<ir::ValueId>& outputs) {
  try {
    return FusionBuilder(graph, nodes, outputs).run();
  } catch (const Refused& refused) {
    return refused.reason;
  }
}

}  // namespace fxfuser::codegen
