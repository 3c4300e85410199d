// In-place writes: made plain where nobody can see them, written back where the caller can, kept in order elsewhere.

#include "partitioner/functionalize.h"

#include "partitioner/capability.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/ir/text.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using namespace fxfuser::ir;
using namespace fxfuser::partitioner;

namespace {

const OpTable& rows() {
  static const OpTable table = OpTable::from_json(embedded_ops_json(), "configs/ops.json");
  return table;
}

/// In-place targets write argument 0 and return it; views of argument 0 are marked by their names.
Functionalized made_functional(const std::string& text) {
  const Graph graph = parse_graph(text, rows());
  std::vector<AliasInfo> alias;
  for (const Node& node : graph.nodes) {
    const std::string name = node.target.substr(0, node.target.rfind('.'));
    AliasInfo info;
    if (name.ends_with("_")) info.writes = {0};
    const bool view = name.ends_with("_") || name == "aten.view" || name == "aten.t" || name == "aten.select";
    info.views.assign(node.outputs.size(), view ? 0 : -1);
    alias.push_back(info);
  }
  return functionalize(graph, alias, rows());
}

bool has_target(const Graph& graph, const std::string& target) {
  for (const Node& node : graph.nodes) {
    if (node.target == target) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a write to a fresh value becomes a plain op", "[functionalize]") {
  const Functionalized out = made_functional(R"(graph g
%x: float32[8]@cpu = input
%a: float32[8]@cpu = aten.sin.default(%x)
%b: float32[8]@cpu = aten.add_.Tensor(%a, %x, 1)
%c: float32[8]@cpu = aten.exp.default(%a)
return %c
)");
  CHECK(has_target(out.graph, "aten.add.Tensor"));
  CHECK_FALSE(has_target(out.graph, "aten.add_.Tensor"));
  CHECK(out.graph.write_backs.empty());
  CHECK(out.kept.empty());
  // exp reads the written value, not the old one.
  const Node& exp = out.graph.nodes.back();
  CHECK(exp.args.at(0).value() == out.graph.nodes.at(1).outputs.at(0));
}

TEST_CASE("a write to an input becomes a plain op and a write-back", "[functionalize]") {
  const Functionalized out = made_functional(R"(graph g
%x: float32[8]@cpu = input
%b: float32[8]@cpu = aten.mul_.Tensor(%x, %x)
%c: float32[8]@cpu = aten.exp.default(%b)
return %c
)");
  CHECK(has_target(out.graph, "aten.mul.Tensor"));
  REQUIRE(out.graph.write_backs.size() == 1);
  CHECK(out.graph.write_backs[0].target == out.graph.inputs[0]);
}

TEST_CASE("what is not provably safe stays a step in its order", "[functionalize]") {
  const Functionalized out = made_functional(R"(graph g
%x: float32[4, 8]@cpu = input
%a: float32[4, 8]@cpu = aten.sin.default(%x)
%v: float32[8]@cpu = aten.select.int(%a, 0, 1)
%w: float32[8]@cpu = aten.relu_.default(%v)
%c: float32[4, 8]@cpu = aten.exp.default(%a)
return %c
)");
  REQUIRE(has_target(out.graph, "aten.relu_.default"));
  REQUIRE(out.kept.size() == 1);
  NodeId write = kNoNode, read = kNoNode;
  for (NodeId id = 0; id < out.graph.nodes.size(); ++id) {
    if (out.graph.nodes[id].target == "aten.relu_.default") write = id;
    if (out.graph.nodes[id].target == "aten.exp.default") read = id;
  }
  CHECK(std::find(out.graph.nodes[read].after.begin(), out.graph.nodes[read].after.end(), write) != out.graph.nodes[read].after.end());
}

TEST_CASE("an input that is returned after a write is the input itself", "[functionalize]") {
  const Functionalized out = made_functional(R"(graph g
%x: float32[8]@cpu = input
%b: float32[8]@cpu = aten.relu_.default(%x)
return %b
)");
  verify(out.graph);
  REQUIRE(out.graph.outputs.size() == 1);
  CHECK((out.graph.write_backs.size() == 1 || has_target(out.graph, "aten.relu_.default")));
}

TEST_CASE("writes that are kept order what touches their own storage only", "[functionalize]") {
  std::string text = "graph g\n%x: float32[8]@cpu = input\n";
  std::string outputs;
  constexpr std::size_t kCount = 500;
  for (std::size_t i = 0; i < kCount; ++i) {
    text += fmt::format("%a{0}: float32[8]@cpu = aten.sin.default(%x)\n%b{0}: float32[8]@cpu = aten.cumsum_.default(%a{0}, 0)\n%c{0}: float32[8]@cpu = aten.exp.default(%a{0})\n", i);
    outputs += fmt::format("{}%c{}", i == 0 ? "" : ", ", i);
  }
  const Functionalized out = made_functional(text + "return " + outputs + "\n");
  REQUIRE(out.kept.size() == kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto first = static_cast<NodeId>(3 * i);
    CHECK(out.graph.nodes.at(first).after.empty());
    CHECK(out.graph.nodes.at(first + 1).after == std::vector<NodeId>{first});
    CHECK(out.graph.nodes.at(first + 2).after == std::vector<NodeId>{first + 1});
  }
}
