// The rows that only say where a value is read: views, positions, indices, factories.

#include <algorithm>

#include "codegen/fusion_builder.h"
#include "codegen/view_memory.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/infer.h"

namespace fxfuser::codegen {
namespace {

std::size_t wrapped(std::int64_t dim, std::size_t rank) { return static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim); }

Affine plus(Affine form, std::int64_t offset) {
  form.offset += offset;
  return form;
}

std::int64_t slice_start(const ir::Node& node, std::int64_t size) {
  const ir::Attr& start = ir::arg(node, "start");
  std::int64_t value = start.is_none() ? 0 : start.as_int();
  if (value < 0) value += size;
  return std::clamp<std::int64_t>(value, 0, size);
}

std::int64_t slice_step(const ir::Node& node) {
  const ir::Attr& step = ir::arg(node, "step");
  return step.is_none() ? 1 : step.as_int();
}

}  // namespace

std::uint32_t FusionBuilder::view(const ir::Node& node, const Map& map) {
  if (const auto loaded = load_reshaped(node, map)) return *loaded;
  return demand(ir::arg(node, "self").value(), view_map(node, map));
}

std::optional<std::uint32_t> FusionBuilder::load_reshaped(const ir::Node& node, const Map& map) {
  const ir::TensorMeta& to = graph_.meta(node.outputs[0]);
  if (node.row->op != "reshape" || to.numel() == 0) return std::nullopt;
  const ir::Sizes& from = graph_.meta(ir::arg(node, "self").value()).sizes;
  const Delinearized plain = delinearize(dot(map, ir::contiguous_strides(to.sizes), axis_count()), from, axes_);
  if (plain.map || plain.split) return std::nullopt;
  const auto is_view = [&](ir::ValueId value) { return inside(value) && graph_.node(graph_.value(value).producer).row->kind == ir::OpKind::View; };
  const auto memory = memory_of(graph_, node.outputs[0], is_view);
  if (!memory || inside(memory->root) || graph_.value(memory->root).kind != ir::ValueKind::Tensor) return std::nullopt;
  const std::uint32_t expr = load(memory->root, Map(graph_.meta(memory->root).sizes.size(), constant(axis_count(), 0)));
  if (fusion_.body[expr].kind == ExprKind::Load) fusion_.body[expr].form = dot(map, memory->strides, axis_count());
  return expr;
}

Map FusionBuilder::view_map(const ir::Node& node, const Map& map) {
  const ir::Sizes& from = graph_.meta(ir::arg(node, "self").value()).sizes;
  const ir::Sizes& to = graph_.meta(node.outputs[0]).sizes;
  const std::string& op = node.row->op;
  if (op == "permute") {
    Map out(map.size());
    const ir::Sizes dims = ir::arg(node, "dims").as_sizes();
    for (std::size_t d = 0; d < dims.size(); ++d) out[wrapped(dims[d], dims.size())] = map[d];
    return out;
  }
  if (op == "expand") {
    Map out(map.end() - static_cast<std::ptrdiff_t>(from.size()), map.end());
    for (std::size_t d = 0; d < from.size(); ++d) {
      if (from[d] == 1) out[d] = constant(axis_count(), 0);
    }
    return out;
  }
  if (op == "slice") {
    Map out = map;
    const std::size_t dim = wrapped(ir::arg(node, "dim").as_int(), from.size());
    out[dim] = plus(scaled(map[dim], slice_step(node)), slice_start(node, from[dim]));
    return out;
  }
  if (op == "flip") {
    Map out = map;
    if (from.empty()) return out;
    for (std::int64_t dim : ir::arg(node, "dims").as_sizes()) {
      const std::size_t d = wrapped(dim, from.size());
      out[d] = plus(scaled(map[d], -1), from[d] - 1);
    }
    return out;
  }
  FXF_ASSERT(op == "reshape", "{} is no view primitive", op);
  if (graph_.meta(node.outputs[0]).numel() == 0) return Map(from.size(), constant(axis_count(), 0));
  return take_apart(dot(map, ir::contiguous_strides(to), axis_count()), from);
}

std::uint32_t FusionBuilder::position(const ir::Node& node, const Map& map) { return node.row->op == "pad" ? pad(node, map) : cat(node, map); }

std::uint32_t FusionBuilder::cat(const ir::Node& node, const Map& map) {
  const ir::AttrList& tensors = ir::arg(node, "tensors").list();
  const DType dtype = graph_.meta(node.outputs[0]).dtype;
  const std::size_t dim = wrapped(ir::arg(node, "dim").as_int(), map.size());
  struct Piece {
    ir::ValueId value;
    std::int64_t low, high;
  };
  std::vector<Piece> pieces;
  std::int64_t at = 0;
  for (const ir::Attr& tensor : tensors) {
    const std::int64_t size = graph_.meta(tensor.value()).sizes[dim];
    if (size > 0) pieces.push_back({tensor.value(), at, at + size});
    at += size;
  }
  if (pieces.empty()) return number(std::int64_t{0}, dtype);
  const std::int64_t low = lowest(map[dim], axes_), high = highest(map[dim], axes_);
  std::erase_if(pieces, [&](const Piece& piece) { return piece.high <= low || piece.low > high; });
  if (pieces.empty()) return number(std::int64_t{0}, dtype);
  const auto read = [&](const Piece& piece) {
    Map shifted = map;
    shifted[dim] = plus(map[dim], -piece.low);
    return converted(demand(piece.value, shifted), dtype);
  };
  if (pieces.size() == 1) return read(pieces[0]);
  // From the last piece backwards: each is chosen where the position lies in it.
  std::uint32_t chosen = 0;
  for (std::size_t i = pieces.size(); i-- > 0;) {
    const Bound bound{map[dim], pieces[i].low, pieces[i].high};
    guards_.push_back(bound);
    const std::uint32_t value = read(pieces[i]);
    guards_.pop_back();
    if (i + 1 == pieces.size()) {
      chosen = value;
      continue;
    }
    Expr expr;
    expr.kind = ExprKind::Select;
    expr.dtype = dtype;
    expr.operands = {value, chosen};
    expr.bounds = {bound};
    expr.note = node.name;
    chosen = push(std::move(expr));
  }
  return chosen;
}

std::uint32_t FusionBuilder::pad(const ir::Node& node, const Map& map) {
  const ir::ValueId self = ir::arg(node, "self").value();
  const ir::TensorMeta& meta = graph_.meta(self);
  const ir::Sizes widths = ir::arg(node, "widths").as_sizes();
  const ir::Attr& fill = ir::arg(node, "value");
  Map shifted = map;
  std::vector<Bound> bounds;
  for (std::size_t d = 0; d < map.size(); ++d) {
    if (widths[2 * d] == 0 && widths[2 * d + 1] == 0) continue;
    shifted[d] = plus(map[d], -widths[2 * d]);
    bounds.push_back({map[d], widths[2 * d], widths[2 * d] + meta.sizes[d]});
  }
  if (bounds.empty()) return demand(self, map);
  const std::uint32_t outside = number(fill.is_none() ? ir::Attr(0.0) : fill, meta.dtype);
  guards_.insert(guards_.end(), bounds.begin(), bounds.end());
  const std::uint32_t value = demand(self, shifted);
  guards_.resize(guards_.size() - bounds.size());
  Expr expr;
  expr.kind = ExprKind::Select;
  expr.dtype = meta.dtype;
  expr.operands = {value, outside};
  expr.bounds = std::move(bounds);
  expr.note = node.name;
  return push(std::move(expr));
}

std::uint32_t FusionBuilder::indexed(const ir::Node& node, const Map& map) {
  const ir::ValueId self = ir::arg(node, "self").value();
  if (inside(self)) refuse_shape("an indexed read of a value made in the same kernel");
  const ir::ValueId index = ir::arg(node, "index").value();
  const ir::TensorMeta& meta = graph_.meta(self);
  const auto dim = static_cast<std::ptrdiff_t>(wrapped(ir::arg(node, "dim").as_int(), meta.sizes.size()));
  const auto index_rank = static_cast<std::ptrdiff_t>(graph_.meta(index).sizes.size());
  Map index_map, self_map;
  if (std::get<std::string>(ir::arg(node, "mode").v) == "gather") {
    index_map = self_map = map;
    if (!self_map.empty()) self_map[static_cast<std::size_t>(dim)] = constant(axis_count(), 0);
  } else {
    index_map.assign(map.begin() + dim, map.begin() + dim + index_rank);
    self_map.assign(map.begin(), map.begin() + dim);
    self_map.push_back(constant(axis_count(), 0));
    self_map.insert(self_map.end(), map.begin() + dim + index_rank, map.end());
  }
  Expr expr;
  expr.kind = ExprKind::Load;
  const std::uint32_t at = demand(index, index_map);
  expr.input = input_of(self);
  expr.dtype = meta.dtype;
  expr.note = node.name;
  expr.form = dot(self_map, meta.strides, axis_count());
  expr.bounds = guards_;
  if (!meta.sizes.empty()) {
    if (meta.sizes[static_cast<std::size_t>(dim)] == 0) refuse_shape("an indexed read of nothing");
    expr.indirect.push_back({at, meta.strides[static_cast<std::size_t>(dim)], meta.sizes[static_cast<std::size_t>(dim)]});
  }
  return push(std::move(expr));
}

std::uint32_t FusionBuilder::factory(const ir::Node& node, const Map& map) {
  const DType dtype = graph_.meta(node.outputs[0]).dtype;
  if (node.row->op == "full") {
    const ir::Attr& value = ir::arg(node, "value");
    if (!value.is_value()) return number(value, dtype);
    return converted(demand(value.value(), {}), dtype);
  }
  Expr expr;
  expr.kind = ExprKind::Index;
  expr.dtype = dtype;
  expr.note = node.name;
  expr.form = map.empty() ? constant(axis_count(), 0) : map[wrapped(ir::arg(node, "dim").as_int(), map.size())];
  return push(std::move(expr));
}

std::optional<Map> FusionBuilder::forward_view(const ir::Node& node, const Map& map) {
  const ir::Sizes& from = graph_.meta(ir::arg(node, "self").value()).sizes;
  const ir::Sizes& to = graph_.meta(node.outputs[0]).sizes;
  const std::string& op = node.row->op;
  if (op == "permute") {
    Map out;
    for (std::int64_t dim : ir::arg(node, "dims").as_sizes()) out.push_back(map[wrapped(dim, from.size())]);
    return out;
  }
  if (op == "reshape") {
    if (graph_.meta(node.outputs[0]).numel() == 0) return std::nullopt;
    return try_take_apart(dot(map, ir::contiguous_strides(from), axis_count()), to);
  }
  if (op == "flip") return view_map(node, map);  // its own inverse
  if (op == "expand" && from.size() <= to.size()) {
    Map out(to.size() - from.size(), constant(axis_count(), 0));
    out.insert(out.end(), map.begin(), map.end());
    for (std::size_t d = 0; d < to.size(); ++d) {
      const std::size_t shift = to.size() - from.size();
      if (to[d] != 1 && (d < shift || from[d - shift] != to[d])) return std::nullopt;
    }
    return out;
  }
  return std::nullopt;
}

std::optional<Map> FusionBuilder::forward(const ir::Node& node, ir::ValueId operand, const Map& map) {
  const ir::Sizes& from = graph_.meta(operand).sizes;
  const ir::Sizes& to = graph_.meta(node.outputs[0]).sizes;
  switch (node.row->kind) {
    case ir::OpKind::Pointwise:
    case ir::OpKind::Cast:
      if (from == to) return map;
      if (graph_.meta(operand).numel() == graph_.meta(node.outputs[0]).numel() && from.size() < to.size()) {
        Map out(to.size() - from.size(), constant(axis_count(), 0));
        out.insert(out.end(), map.begin(), map.end());
        return out;
      }
      return std::nullopt;
    case ir::OpKind::View: return forward_view(node, map);
    case ir::OpKind::Reduction: {
      const ir::Attr& dims_attr = ir::arg(node, "dims");
      const ir::Sizes dims = dims_attr.as_sizes();
      const ir::Attr& keep = ir::arg(node, "keepdim");
      const bool keepdim = !keep.is_none() && keep.as_bool();
      Map out;
      for (std::size_t d = 0; d < from.size(); ++d) {
        const bool folded = dims_attr.is_none() || dims.empty() || std::any_of(dims.begin(), dims.end(), [&](std::int64_t dim) { return wrapped(dim, from.size()) == d; });
        if (!folded) out.push_back(map[d]);
        else if (keepdim) out.push_back(constant(axis_count(), 0));
      }
      return out;
    }
    default: return std::nullopt;
  }
}

void FusionBuilder::spread_anchors() {
  for (ir::NodeId id : nodes_) {
    const ir::Node& node = graph_.node(id);
    bool open = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId value) { return anchors_.count(value) == 0; });
    ir::for_each_value(node.args, [&](ir::ValueId operand) {
      const auto anchor = anchors_.find(operand);
      if (!open || anchor == anchors_.end() || graph_.value(operand).kind != ir::ValueKind::Tensor) return;
      const std::optional<Map> map = forward(node, operand, Map(anchor->second));
      if (!map) return;
      for (ir::ValueId value : node.outputs) anchors_.emplace(value, *map);
      open = false;
    });
  }
}

}  // namespace fxfuser::codegen
