// Calls that a plan takes, for callgrind to count (tests/python/test_hit_path.py): sigmoid of 3 x 3 through Program::run, with
// the outputs that a host program would keep. Prints how many calls there were; nothing else of it is measured.

#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>

#include "executor/interface/entry.h"

using namespace fxfuser;

namespace {

ImportedGraph sigmoid() {
  ImportedGraph imported;
  const ir::ValueId x = imported.graph.add_input("x", ir::contiguous(ir::DType::Float32, {}, {3, 3}));
  ir::Node node;
  node.name = "sigmoid";
  node.target = "aten.sigmoid.default";
  node.args = {ir::ValueRef{x}};
  imported.alias.push_back({{}, {-1}});
  const ir::ValueId out = imported.graph.nodes[imported.graph.add_node(std::move(node), 1)].outputs[0];
  imported.graph.values[out].meta = ir::contiguous(ir::DType::Float32, {}, {3, 3});
  imported.graph.outputs = {ir::ValueRef{out}};
  return imported;
}

}  // namespace

/// What is counted: its name is given to callgrind.
extern "C" __attribute__((noinline)) void fxfuser_measured_calls(Program& program, const executor::Options& options, std::span<const c10::IValue> inputs, std::vector<c10::IValue>& outputs, int count) {
  for (int i = 0; i < count; ++i) program.run(options, inputs, outputs);
}

int main(int argc, char** argv) {
  constexpr int kCalls = 1000;
  (void)argv;
  Service& service = *fxfuser_codegen_entry()->service();
  const auto options = service.parse_options("nvfuser", {{"on_error", ir::Attr("raise")}}).options;
  const auto program = service.import(sigmoid());
  const std::vector<c10::IValue> inputs{at::rand({3, 3})};
  std::vector<c10::IValue> outputs;
  program->run(options, inputs, outputs);  // plans, and compiles or loads the kernel
  program->run(options, inputs, outputs);
  if (argc > 1) return 0;  // fills the cache only
  const Stats before = service.stats();
  fxfuser_measured_calls(*program, options, inputs, outputs, kCalls);
  const Stats after = service.stats();
  const bool hits = after.plan_hits - before.plan_hits == kCalls && after.launches_host - before.launches_host == kCalls;
  const bool right = at::allclose(outputs.at(0).toTensor(), inputs[0].toTensor().sigmoid());
  std::printf("calls %d\n", kCalls);
  return hits && right ? EXIT_SUCCESS : EXIT_FAILURE;
}
