#include "partitioner/decompose.h"

#include <algorithm>
#include <map>
#include <optional>

#include "partitioner/decompose_builder.h"
#include "partitioner/ir/error.h"

namespace fxfuser::partitioner {

Attr list_attr(const Sizes& sizes) {
  ir::AttrList list;
  for (std::int64_t size : sizes) list.emplace_back(size);
  return list;
}

Sizes all_dims(std::size_t rank) {
  Sizes dims;
  for (std::size_t d = 0; d < rank; ++d) dims.push_back(static_cast<std::int64_t>(d));
  return dims;
}

ValueId DecomposeBuilder::tensor(std::string_view param) const {
  const Attr& attr = arg(param);
  FXF_CHECK(attr.is_value(), NotImplemented, "{}: {} is not a tensor", node_->name, param);
  return attr.value();
}

std::int64_t DecomposeBuilder::integer(std::string_view param, std::int64_t fallback) const {
  const Attr& attr = arg(param);
  if (attr.is_none()) return fallback;
  FXF_CHECK(!attr.is_value(), NotImplemented, "{}: {} is only known at the call", node_->name, param);
  return attr.as_int();
}

double DecomposeBuilder::real(std::string_view param, double fallback) const {
  const Attr& attr = arg(param);
  if (attr.is_none()) return fallback;
  FXF_CHECK(!attr.is_value(), NotImplemented, "{}: {} is only known at the call", node_->name, param);
  return attr.as_double();
}

bool DecomposeBuilder::flag(std::string_view param, bool fallback) const { return arg(param).is_none() ? fallback : arg(param).as_bool(); }

std::size_t DecomposeBuilder::dim(std::string_view param, std::size_t rank) const {
  const std::int64_t value = integer(param, 0);
  const auto bound = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  FXF_CHECK(value >= -bound && value < bound, Value, "{}: dim {} is out of range for rank {}", node_->name, value, rank);
  return static_cast<std::size_t>(value < 0 ? value + bound : value);
}

std::vector<ValueId> DecomposeBuilder::calls(std::string_view op, std::vector<Attr> args) {
  const ir::OpRow* row = table_.find(op);
  FXF_ASSERT(row != nullptr, "the table has no row {}", op);
  ir::Node made;
  made.row = row;
  made.target = "fxf." + std::string(op);
  made.name = node_ != nullptr ? node_->name : std::string(op);
  made.where = node_ != nullptr ? node_->where : "";
  made.origin = node_ != nullptr ? node_->origin : 0;
  made.args = std::move(args);
  for (std::size_t i = made.args.size(); i < row->params.size(); ++i) {
    const auto fallback = row->defaults.find(row->params[i]);
    made.args.push_back(fallback == row->defaults.end() ? Attr() : fallback->second);
  }
  ir::Inferred inferred = ir::infer(out_, made);
  const ir::NodeId id = out_.add_node(std::move(made), inferred.outputs.size());
  const std::vector<ValueId> outputs = out_.nodes[id].outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) out_.values[outputs[i]].meta = std::move(inferred.outputs[i]);
  return outputs;
}

ValueId DecomposeBuilder::cast(ValueId value, DType dtype) { return meta(value).dtype == dtype ? value : call("cast", {ref(value), dtype}); }

ValueId DecomposeBuilder::result(ValueId value, DType dtype) { return meta(value).dtype == dtype ? value : call("cast", {ref(value), dtype, false}); }

ValueId DecomposeBuilder::accumulated(ValueId value) {
  const bool cpu = meta(value).device.kind == ir::DeviceKind::Cpu;
  return cpu && meta(value).dtype == DType::Float32 ? cast(value, DType::Float64) : widened(value);
}

ValueId DecomposeBuilder::reshape(ValueId value, const Sizes& shape) { return meta(value).sizes == shape ? value : call("reshape", {ref(value), list_attr(shape)}); }

ValueId DecomposeBuilder::expand(ValueId value, const Sizes& shape) { return meta(value).sizes == shape ? value : call("expand", {ref(value), list_attr(shape)}); }

ValueId DecomposeBuilder::permute(ValueId value, const Sizes& dims) { return call("permute", {ref(value), list_attr(dims)}); }

ValueId DecomposeBuilder::slice(ValueId value, std::size_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  return call("slice", {ref(value), static_cast<std::int64_t>(dim), start, end, step});
}

ValueId DecomposeBuilder::reduce(std::string_view op, ValueId value, const Sizes& dims, bool keepdim) {
  return call(op, {ref(value), dims.empty() && !meta(value).sizes.empty() ? Attr() : list_attr(dims), keepdim});
}

ValueId DecomposeBuilder::full(const Sizes& shape, const Attr& value, DType dtype, ir::Device device) {
  return call("full", {list_attr(shape), value, dtype, device});
}

ValueId DecomposeBuilder::index(const Sizes& shape, std::size_t dim, DType dtype, ir::Device device) {
  return call("index", {list_attr(shape), static_cast<std::int64_t>(dim), dtype, device});
}

namespace {

const std::map<std::string_view, Decomposition>& decompositions() {
  static const std::map<std::string_view, Decomposition> all = [] {
    std::map<std::string_view, Decomposition> out;
    for (const DecompositionTable* table : {&view_decompositions(), &pointwise_decompositions(), &reduction_decompositions(), &norm_decompositions(), &norm_backward_decompositions(),
                                            &softmax_decompositions(), &loss_decompositions(), &read_decompositions(), &random_decompositions()}) {
      for (const auto& [name, function] : *table) out.emplace(name, function);
    }
    return out;
  }();
  return all;
}

Attr translated(const Attr& attr, const std::unordered_map<ValueId, ValueId>& values) {
  if (attr.is_value()) {
    const auto found = values.find(attr.value());
    FXF_ASSERT(found != values.end(), "a partition reads a value that is not among its inputs");
    return ir::ValueRef{found->second};
  }
  if (!attr.is_list()) return attr;
  ir::AttrList out;
  for (const Attr& item : attr.list()) out.push_back(translated(item, values));
  return out;
}

/// With the numbers that are known in lists (sizes, dims) and, for ops that only move elements, everywhere.
Attr with_numbers(const Attr& attr, const std::unordered_map<ValueId, std::int64_t>& numbers, bool everywhere) {
  if (attr.is_value()) {
    const auto found = numbers.find(attr.value());
    return everywhere && found != numbers.end() ? Attr(found->second) : attr;
  }
  if (!attr.is_list()) return attr;
  ir::AttrList out;
  for (const Attr& item : attr.list()) out.push_back(with_numbers(item, numbers, true));
  return out;
}

bool moves_elements(const ir::OpRow& row) {
  return row.kind == ir::OpKind::View || row.kind == ir::OpKind::Position || row.kind == ir::OpKind::Indexed || row.strides == "view";
}

/// Eager's strides for a composite's result, by the row's rule, from the metas of the tensors it took.
Sizes result_strides(const std::string& rule, const ir::TensorMeta& result, const std::vector<const ir::TensorMeta*>& operands) {
  if (rule == "view" || rule == "own" || rule == "copy" || operands.empty()) return result.strides;
  if (rule == "iterator") {
    std::vector<const ir::TensorMeta*> taking_part;
    for (const ir::TensorMeta* meta : operands) {
      if (meta->sizes.size() <= result.sizes.size()) taking_part.push_back(meta);
    }
    return ir::iterator_strides(result.sizes, taking_part);
  }
  const bool on_cpu = result.device.kind == ir::DeviceKind::Cpu;
  if (rule == "memory_format" || (rule == "input_format" && on_cpu)) return ir::memory_format_strides(*operands[0]);
  if ((rule == "like_self" || rule == "input_format") && operands[0]->sizes == result.sizes) {
    return ir::is_non_overlapping_and_dense(*operands[0]) ? operands[0]->strides : ir::iterator_strides(result.sizes, {operands[0]});
  }
  return ir::contiguous_strides(result.sizes);
}

class Decomposer {
 public:
  Decomposer(const ir::Graph& graph, const ir::OpTable& table) : graph_(graph), builder_(table, out_) {}

  ir::Graph run(const Partition& partition, const std::vector<ir::TensorMeta>& metas, const std::vector<std::optional<std::int64_t>>& numbers) {
    FXF_ASSERT(metas.size() == partition.inputs.size(), "a partition has {} inputs and {} metas", partition.inputs.size(), metas.size());
    out_.name = graph_.name;
    for (std::size_t i = 0; i < metas.size(); ++i) {
      const ir::Value& value = graph_.value(partition.inputs[i]);
      values_[partition.inputs[i]] = out_.add_input(value.name, metas[i], value.kind);
      if (i < numbers.size() && numbers[i]) numbers_[partition.inputs[i]] = *numbers[i];
      if (!home_ && metas[i].device.kind == ir::DeviceKind::Cuda) home_ = metas[i].device;
    }
    for (ir::NodeId id : partition.nodes) node(graph_.node(id));
    for (ValueId output : partition.outputs) {
      FXF_CHECK(values_.at(output) != ir::kNoValue, NotImplemented, "{} is None", graph_.value(output).name);
      out_.outputs.emplace_back(ir::ValueRef{values_.at(output)});
    }
    return std::move(out_);
  }

 private:
  void node(const ir::Node& original) {
    ir::Node here = original;
    for (Attr& attr : here.args) attr = translated(with_numbers(attr, numbers_, moves_elements(*here.row)), values_);
    for (Attr& attr : here.args) {
      // "cuda" without an index is the device that the partition is on.
      const auto* device = std::get_if<ir::Device>(&attr.v);
      if (device != nullptr && home_ && device->kind == ir::DeviceKind::Cuda && device->index < 0) attr = *home_;
    }
    builder_.set_node(&here);
    const ValueId before = static_cast<ValueId>(out_.values.size());
    std::vector<ValueId> results;
    if (here.row->kind == ir::OpKind::Composite) {
      const auto function = decompositions().find(here.row->via);
      FXF_CHECK(function != decompositions().end(), NotImplemented, "{}: there is no decomposition '{}'", here.name, here.row->via);
      results = function->second(builder_);
    } else {
      std::vector<Attr> args;
      for (const std::string& param : here.row->params) args.push_back(ir::arg(here, param));
      results = builder_.calls(here.row->op, std::move(args));
    }
    FXF_CHECK(results.size() >= original.outputs.size(), NotImplemented, "{}: {} results, {} expected", here.name, results.size(), original.outputs.size());
    if (here.row->kind == ir::OpKind::Composite) keep_apart(here, before, results);
    if (here.row->kind == ir::OpKind::Composite || here.row->strides == "like_self") set_strides(here, before, results);
    for (std::size_t i = 0; i < original.outputs.size(); ++i) values_[original.outputs[i]] = results[i];
    builder_.set_node(nullptr);
  }

  /// Whether a value was there before the node, or is a view of one that was.
  bool is_older(ValueId value, ValueId before) const {
    while (value >= before) {
      const ir::Node& node = out_.node(out_.value(value).producer);
      if (!ir::is_memory_view(*node.row)) return false;
      value = ir::arg(node, "self").value();
    }
    return true;
  }

  /// A result that comes down to a value which was there: what eager returns is a view of it, or a copy, or (rule "own") the
  /// same tensor.
  void keep_apart(const ir::Node& here, ValueId before, std::vector<ValueId>& results) {
    const std::string& rule = here.row->strides;
    if (rule == "own") return;
    for (ValueId& result : results) {
      if (result == ir::kNoValue || !is_older(result, before)) continue;
      const ir::TensorMeta meta = out_.meta(result);
      if (rule != "view") {
        result = builder_.call("cast", {builder_.ref(result), meta.dtype});
        if (rule == "copy") out_.values[result].meta->strides = ir::contiguous_strides(meta.sizes);
      } else if (result < before) {
        result = builder_.call("reshape", {builder_.ref(result), list_attr(meta.sizes)});
        out_.values[result].meta->strides = meta.strides;
      }
    }
  }

  void set_strides(const ir::Node& here, ValueId before, const std::vector<ValueId>& results) {
    std::vector<const ir::TensorMeta*> operands;
    std::vector<ir::TensorMeta> held;
    if (here.row->strides == "memory_format" || here.row->strides == "input_format") held.push_back(out_.meta(ir::arg(here, "input").value()));
    else ir::for_each_value(here.args, [&](ValueId value) {
      if (out_.value(value).kind == ir::ValueKind::Tensor) held.push_back(out_.meta(value));
    });
    for (const ir::TensorMeta& meta : held) operands.push_back(&meta);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i] < before || results[i] == ir::kNoValue) continue;  // a value that was there already keeps its own layout
      ir::TensorMeta& meta = *out_.values[results[i]].meta;
      // Only the first result takes after the operands; statistics are plain.
      meta.strides = i == 0 || here.row->strides == "view" ? result_strides(here.row->strides, meta, operands) : meta.strides;
    }
  }

  const ir::Graph& graph_;
  ir::Graph out_;
  std::optional<ir::Device> home_;  // of the CUDA inputs
  DecomposeBuilder builder_;
  std::unordered_map<ValueId, ValueId> values_;
  std::unordered_map<ValueId, std::int64_t> numbers_;
};

}  // namespace

const std::vector<std::string_view>& decomposition_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const auto& [name, function] : decompositions()) out.push_back(name);
    return out;
  }();
  return names;
}

ir::Graph decompose(const ir::Graph& graph, const Partition& partition, const std::vector<ir::TensorMeta>& metas, const ir::OpTable& table,
                    const std::vector<std::optional<std::int64_t>>& numbers) {
  return Decomposer(graph, table).run(partition, metas, numbers);
}

}  // namespace fxfuser::partitioner
