// Builds sigmoid(x) * 2 + 1, runs it fused, checks it against ATen and prints the kernels that were launched.
#include <ATen/ATen.h>

#include <cstdio>

#include "executor/interface/fxfuser.h"

using fxfuser::ir::Attr;
using fxfuser::ir::TensorMeta;
using fxfuser::ir::ValueId;
using fxfuser::ir::ValueRef;

namespace {

/// Appends a call of an ATen overload: all arguments of its schema, in order. `result` is a forecast: its dtype, rank and device
/// decide what is fused, sizes may differ at the call.
ValueId call(fxfuser::ImportedGraph& imported, std::string name, std::string target, std::vector<Attr> arguments, const TensorMeta& result) {
  fxfuser::ir::Graph& graph = imported.graph;
  fxfuser::ir::Node node;
  node.name = std::move(name);
  node.target = std::move(target);
  node.args = std::move(arguments);
  node.origin = static_cast<std::uint32_t>(graph.nodes.size());
  imported.alias.push_back({.writes = {}, .views = {-1}});  // writes nothing, returns a fresh tensor
  const ValueId output = graph.nodes[graph.add_node(std::move(node), 1)].outputs[0];
  graph.values[output].meta = result;
  return output;
}

}  // namespace

int main() {
  try {
    fxfuser::ImportedGraph imported;
    imported.graph.name = "example";
    const TensorMeta meta = fxfuser::ir::contiguous(fxfuser::ir::DType::Float32, {}, {64, 256});
    const ValueId x = imported.graph.add_input("x", meta);
    const ValueId s = call(imported, "sigmoid", "aten.sigmoid.default", {ValueRef{x}}, meta);
    const ValueId m = call(imported, "mul", "aten.mul.Tensor", {ValueRef{s}, 2}, meta);
    const ValueId y = call(imported, "add", "aten.add.Tensor", {ValueRef{m}, 1, 1}, meta);
    imported.graph.outputs = {ValueRef{y}};

    fxfuser::Service& service = fxfuser::service();
    service.record_kernels(true);
    const auto program = service.import(std::move(imported));
    const auto options = service.parse_options("nvfuser", {}).options;

    const at::Tensor input = at::randn({64, 256});
    const std::vector<c10::IValue> inputs{input};
    std::vector<c10::IValue> outputs;
    const fxfuser::RunResult result = program->run(options, inputs, outputs);
    for (const std::string& warning : result.warnings) std::printf("warning: %s\n", warning.c_str());
    if (result.status != fxfuser::RunStatus::Ran) {
      std::printf("not run: %s\n", result.reason.c_str());
      return 1;
    }
    const bool equal = at::allclose(outputs.at(0).toTensor(), input.sigmoid() * 2 + 1);
    for (const auto& [kernel, launches] : service.stats().kernels) std::printf("kernel %s: %llu launch\n", kernel.c_str(), static_cast<unsigned long long>(launches));
    std::printf("equal to ATen: %s\n", equal ? "yes" : "no");
    return equal ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
