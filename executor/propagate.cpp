#include "executor/propagate.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "executor/aten_bridge.h"
#include "executor/aten_call.h"
#include "executor/row_overload.h"
#include "executor/scalar_step.h"
#include "partitioner/ir/infer.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::executor {
namespace {

class Propagation {
 public:
  explicit Propagation(const ir::Graph& graph) : graph_(graph), slots_(graph.values.size()), devices_(graph.values.size()) {}

  /// `other`: what it is when it is no tensor.
  void give(std::size_t input, const std::optional<ir::TensorMeta>& meta, const c10::IValue& other) {
    const ir::ValueId value = input_at(graph_, input);
    slots_[value] = meta ? c10::IValue(on_meta(*meta)) : other;
    if (meta) devices_[value] = meta->device;
  }

  ir::Graph run() {
    for (ir::ValueId id : graph_.inputs) describe(id);
    for (const ir::Constant& constant : graph_.constants) describe(constant.value);
    for (const ir::Node& node : graph_.nodes) {
      if (node.kind == ir::NodeKind::Callable) continue;  // returns nothing
      if (node.kind == ir::NodeKind::Scalar) slots_[node.outputs.at(0)] = run_scalar(node.target, node.args, slots_);
      else call(node);
      for (ir::ValueId output : node.outputs) describe(output);
    }
    return std::move(graph_);
  }

 private:
  /// The call with every device in it replaced; results are noted where the call itself would have put them.
  void call(const ir::Node& node) {
    ir::Node moved = node;
    std::optional<ir::Device> named;
    for (ir::Attr& attr : moved.args) {
      if (const auto* device = std::get_if<ir::Device>(&attr.v)) {
        named = *device;
        attr = ir::Device{ir::DeviceKind::Meta, -1};
      }
    }
    const std::optional<ir::Device> home = home_of(node, [this](ir::ValueId value) { return devices_[value]; });
    if (!home && !named) {
      const auto& schema = find_operator(node.target).schema();
      const auto position = schema.argumentIndexWithName("device");
      if (position && static_cast<std::size_t>(*position) < moved.args.size()) moved.args[static_cast<std::size_t>(*position)] = ir::Device{ir::DeviceKind::Meta, -1};
    }
    try {
      AtenCall::resolve(graph_, moved).run(slots_);
    } catch (const std::exception&) {
      // Some meta kernels are registered by Python only; a row that says what it returns stands in.
      if (!is_inferred(node)) throw;
      const std::vector<ir::TensorMeta> metas = ir::infer(graph_, node).outputs;
      for (std::size_t i = 0; i < node.outputs.size(); ++i) slots_[node.outputs[i]] = on_meta(metas.at(i));
    }
    for (ir::ValueId output : node.outputs) devices_[output] = named ? named : home;
  }

  static bool is_inferred(const ir::Node& node) {
    return node.row != nullptr && (node.row->kind == ir::OpKind::Pointwise || node.row->kind == ir::OpKind::Reduction || node.row->kind == ir::OpKind::Cast);
  }

  static at::Tensor on_meta(const ir::TensorMeta& meta) {
    return at::empty_strided(meta.sizes, meta.strides, at::TensorOptions().dtype(to_scalar_type(meta.dtype)).device(c10::kMeta));
  }

  void describe(ir::ValueId id) {
    ir::Value& value = graph_.values[id];
    value.meta.reset();
    value.kind = slots_[id].isScalar() ? ir::ValueKind::Scalar : ir::ValueKind::Other;
    if (!slots_[id].isTensor() || !slots_[id].toTensor().defined()) return;
    value.kind = ir::ValueKind::Tensor;
    value.meta = meta_of(slots_[id].toTensor());
    value.meta->device = devices_[id].value_or(ir::Device{});
  }

  ir::Graph graph_;
  Slots slots_;
  std::vector<std::optional<ir::Device>> devices_;  // by value; set for tensors
};

/// A callable of the host says what it returns when it runs; one that returns nothing (a check of the inputs) says all it has to.
bool must_run(const ir::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) { return node.kind == ir::NodeKind::Callable && !node.outputs.empty(); });
}

template <typename Give>
std::optional<ir::Graph> run_on_meta(const ir::Graph& graph, Give&& give) {
  if (must_run(graph)) return std::nullopt;
  const at::NoGradGuard no_grad;
  try {
    Propagation propagation(graph);
    give(propagation);
    return propagation.run();
  } catch (const std::exception&) {
    return std::nullopt;  // what is wrong, if anything is, shows when the graph runs
  }
}

}  // namespace

std::optional<ir::Graph> propagate(const ir::Graph& graph, std::span<const c10::IValue> inputs) {
  return run_on_meta(graph, [&](Propagation& to) {
    for (std::size_t i = 0; i < inputs.size(); ++i) to.give(i, inputs[i].isTensor() ? std::optional(meta_of(inputs[i].toTensor())) : std::nullopt, inputs[i]);
  });
}

std::optional<ir::Graph> propagate(const ir::Graph& graph, const InputMetas& inputs) {
  return run_on_meta(graph, [&](Propagation& to) {
    for (std::size_t i = 0; i < inputs.size(); ++i) to.give(i, inputs[i], c10::IValue());
  });
}

}  // namespace fxfuser::executor
