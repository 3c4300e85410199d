#include "executor/propagate.h"

#include <ATen/ops/empty_strided.h>
#include <c10/core/GradMode.h>

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
  Propagation(const ir::Graph& graph, std::span<const c10::IValue> inputs) : graph_(graph), slots_(graph.values.size()), devices_(graph.values.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ir::ValueId value = i < graph_.inputs.size() ? graph_.inputs[i] : graph_.constants[i - graph_.inputs.size()].value;
      slots_[value] = inputs[i];
      if (!inputs[i].isTensor()) continue;
      const at::Tensor& tensor = inputs[i].toTensor();
      devices_[value] = to_device(tensor.device());
      slots_[value] = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kMeta));
    }
  }

  ir::Graph run() {
    for (ir::ValueId id : graph_.inputs) describe(id);
    for (const ir::Constant& constant : graph_.constants) describe(constant.value);
    for (const ir::Node& node : graph_.nodes) {
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
    const std::optional<ir::Device> home = home_of(node);
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

  /// Where a node computes: the device of its tensors, those of no dims on the CPU last (they count as numbers elsewhere).
  std::optional<ir::Device> home_of(const ir::Node& node) const {
    std::optional<ir::Device> home;
    ir::for_each_value(node.args, [&](ir::ValueId value) {
      if (!devices_[value]) return;
      if (!home || (home->kind == ir::DeviceKind::Cpu && devices_[value]->kind != ir::DeviceKind::Cpu)) home = devices_[value];
    });
    return home;
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

}  // namespace

std::optional<ir::Graph> propagate(const ir::Graph& graph, std::span<const c10::IValue> inputs) {
  for (const ir::Node& node : graph.nodes) {
    if (node.kind == ir::NodeKind::Callable) return std::nullopt;
  }
  const at::NoGradGuard no_grad;
  try {
    return Propagation(graph, inputs).run();
  } catch (const std::exception&) {
    return std::nullopt;  // what is wrong, if anything is, shows when the graph runs
  }
}

}  // namespace fxfuser::executor
