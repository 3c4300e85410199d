// The library from C++, without Python: a graph built by hand runs fused; graphs that make no sense are refused by name.

#include <ATen/ATen.h>

#include "executor/interface/entry.h"
#include "partitioner/ir/error.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using ir::Attr;
using ir::ValueId;
using ir::ValueRef;

namespace {

Service& library() { return *fxfuser_codegen_entry()->service(); }

ValueId call(ImportedGraph& imported, const std::string& name, const std::string& target, std::vector<Attr> args) {
  ir::Node node;
  node.name = name;
  node.target = target;
  node.args = std::move(args);
  node.origin = static_cast<std::uint32_t>(imported.graph.nodes.size());
  imported.alias.push_back({{}, {-1}});
  const ValueId output = imported.graph.nodes[imported.graph.add_node(std::move(node), 1)].outputs[0];
  imported.graph.values[output].meta = ir::contiguous(ir::DType::Float32, {}, {4, 6});
  return output;
}

ImportedGraph chain() {
  ImportedGraph imported;
  imported.graph.name = "chain";
  const ValueId x = imported.graph.add_input("x", ir::contiguous(ir::DType::Float32, {}, {4, 6}));
  const ValueId s = call(imported, "s", "aten.sigmoid.default", {ValueRef{x}});
  imported.graph.outputs = {ValueRef{call(imported, "m", "aten.mul.Tensor", {ValueRef{s}, 2})}};
  return imported;
}

std::string import_error(ImportedGraph graph) {
  try {
    library().import(std::move(graph));
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a graph built in C++ runs in one generated kernel", "[service]") {
  const auto program = library().import(chain());
  const auto options = library().parse_options("nvfuser", {{"on_error", Attr(std::string("raise"))}}).options;
  const at::Tensor x = at::randn({4, 6});
  for (const std::int64_t rows : {4, 9}) {
    const at::Tensor input = at::randn({rows, 6});
    const std::uint64_t before = library().stats().launches_host;
    const std::vector<c10::IValue> inputs{input};
    std::vector<c10::IValue> outputs;
    REQUIRE(program->run(options, inputs, outputs).status == RunStatus::Ran);
    CHECK(at::allclose(outputs.at(0).toTensor(), input.sigmoid() * 2));
    CHECK(library().stats().launches_host == before + 1);
  }
}

TEST_CASE("undefined values and cycles are refused with the node's name", "[service]") {
  ImportedGraph undefined = chain();
  undefined.graph.nodes[1].args[0] = ValueRef{77};
  CHECK(import_error(std::move(undefined)).find("m") != std::string::npos);
  ImportedGraph cycle = chain();
  cycle.graph.nodes[0].args[0] = ValueRef{cycle.graph.nodes[1].outputs[0]};
  const std::string message = import_error(std::move(cycle));
  CHECK(message != "accepted");
  CHECK(message.find("s") != std::string::npos);
}
