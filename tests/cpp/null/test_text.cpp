#include "partitioner/ir/text.h"

#include <limits>

#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using namespace fxfuser::ir;

namespace {

const OpTable& table() {
  static const OpTable rows = OpTable::from_json(R"({"rows":[
{"op":"add","targets":{"aten.add.Tensor":"self other alpha"},"args":{"alpha":1},"numbers":"alpha","kind":"pointwise","expr":"{self}+{alpha}*{other}"},
{"op":"max_dim","targets":{"aten.max.dim":"self dim keepdim"},"kind":"reduction","outputs":"values indices","arg_state":true,"fold":"{b}>{a}","init":"-inf"}
]})",
                                                 "test");
  return rows;
}

const char* const kFull = R"(graph everything at once
%x: float32[8, 16]@cpu = input
%s: bfloat16[8, 16]@cuda:0 strides=[1, 8] = input
%z: bool[]@meta = input
%n: scalar = input
%o: other = input
%u: ? = input
%w: float32[16]@cpu = constant "layer.weight"
%y: float32[8, 16]@cpu = aten.add.Tensor(%x, %w, 1)  # file.py:12
%max.0: float32[8]@cpu, %max.1: int64[8]@cpu = aten.max.dim(%y, 1, False) {after=[0]}
%c: float32[8, 16]@cpu = fxf.add(%y, 2.5, 1)
%m: scalar = scalar operator.add(%n, 1)
%k: ? = callable "<built-in function f>"(opaque("fn"), [1, [2.5, None], []], complex(1.0, -inf)) {name=call}
= aten._assert_async.default(%y, "a \"quoted\"\n\x01 text # not a comment", float16, @cuda:1, layout.strided, memory_format.channels_last_3d) {name=check}
return %y, None, %max.1, 3, True, nan, -0.0, 1e+300
write %x <- %c
)";

std::string error_of(const std::string& text) {
  try {
    parse_graph(text, table());
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("the text form round-trips", "[text]") {
  const Graph graph = parse_graph(kFull, table());
  CHECK(print(graph) == kFull);
  CHECK(graph.name == "everything at once");
  CHECK(graph.inputs.size() == 6);
  CHECK(graph.constants.at(0).path == "layer.weight");
  CHECK(graph.nodes.at(0).where == "file.py:12");
  CHECK(graph.nodes.at(0).row == table().find("add"));
  CHECK(graph.nodes.at(0).form != nullptr);
  CHECK(graph.nodes.at(1).name == "max");
  CHECK(graph.nodes.at(1).after == std::vector<NodeId>{0});
  CHECK(graph.nodes.at(2).form == nullptr);
  CHECK(graph.nodes.at(3).kind == NodeKind::Scalar);
  CHECK(graph.nodes.at(4).kind == NodeKind::Callable);
  CHECK(graph.nodes.at(4).name == "call");
  CHECK(graph.nodes.at(5).outputs.empty());
  CHECK(std::get<std::string>(graph.nodes[5].args[1].v) == "a \"quoted\"\n\x01 text # not a comment");
  CHECK(graph.values[graph.inputs[1]].meta->strides == Sizes{1, 8});
  CHECK(graph.values[graph.inputs[1]].meta->device == Device{DeviceKind::Cuda, 0});
  CHECK(graph.values[graph.inputs[3]].kind == ValueKind::Scalar);
  CHECK_FALSE(graph.values[graph.inputs[5]].meta.has_value());
  CHECK(graph.write_backs.size() == 1);
}

TEST_CASE("numbers print so that they read back as the same number of the same kind", "[text]") {
  CHECK(print(Attr(1.0)) == "1.0");
  CHECK(print(Attr(0.1)) == "0.1");
  CHECK(print(Attr(1e22)) == "1e+22");
  CHECK(print(Attr(5e-324)) == "5e-324");
  CHECK(print(Attr(-0.0)) == "-0.0");
  CHECK(print(Attr(-std::numeric_limits<double>::quiet_NaN())) == "nan");
  CHECK(print(Attr(std::numeric_limits<std::int64_t>::min())) == "-9223372036854775808");
  CHECK(print(Attr(true)) == "True");
  const std::vector<double> values{0.1, 1.0 / 3, 1e22, 1.7976931348623157e308, 5e-324, -2.5e-7, 123456789.0};
  for (const double value : values) {
    const Graph graph = parse_graph("graph\nreturn " + print(Attr(value)), table());
    CHECK(std::get<double>(graph.outputs.at(0).v) == value);
  }
}

TEST_CASE("values that share a name, or have none, print apart", "[text]") {
  Graph graph;
  graph.add_input("x", std::nullopt);
  graph.add_input("x", std::nullopt);
  graph.add_input("", std::nullopt);
  graph.add_input("x y", std::nullopt);
  const std::string text = print(graph);
  CHECK(text == "graph\n%x: ? = input\n%x_1: ? = input\n%v2: ? = input\n%x_y: ? = input\nreturn\n");
  CHECK(print(parse_graph(text, table())) == text);
}

TEST_CASE("comments and blank lines are skipped", "[text]") {
  const Graph graph = parse_graph("# a scene\n\ngraph g\n# inputs\n%x: float32[2]@cpu = input  # first\nreturn %x # done\n", table());
  CHECK(print(graph) == "graph g\n%x: float32[2]@cpu = input\nreturn %x\n");
}

TEST_CASE("a bad text says the line", "[text]") {
  const std::string head = "graph g\n%x: float32[2]@cpu = input\n";
  CHECK_THAT(error_of("%x: ? = input"), ContainsSubstring("line 1: expected 'graph'"));
  CHECK_THAT(error_of(head), ContainsSubstring("without 'return'"));
  CHECK_THAT(error_of(head + "return %y"), ContainsSubstring("line 3: %y is not defined"));
  CHECK_THAT(error_of(head + "%x: ? = input\nreturn"), ContainsSubstring("line 3: %x is defined twice"));
  CHECK_THAT(error_of(head + "%y: float33[2]@cpu = input\nreturn"), ContainsSubstring("unknown dtype"));
  CHECK_THAT(error_of(head + "%y: ? = fxf.nothing(%x)\nreturn"), ContainsSubstring("line 3: fxf.nothing is canonical"));
  CHECK_THAT(error_of(head + "%y: ? = aten.f(%x\nreturn"), ContainsSubstring("line 3: expected ')'"));
  CHECK_THAT(error_of(head + "%y: ? = aten.f(flaot32)\nreturn"), ContainsSubstring("unknown word 'flaot32'"));
  CHECK_THAT(error_of(head + "%y: ? = aten.f(1.5.2)\nreturn"), ContainsSubstring("bad number"));
  CHECK_THAT(error_of(head + "%y: ? = aten.f(%x) {after=[5]}\nreturn"), ContainsSubstring("does not come before it"));
  CHECK_THAT(error_of(head + "%y: ? = fxf.add(%x)\nreturn"), ContainsSubstring("lacks argument 'other'"));
  CHECK_THAT(error_of(head + "%y: ? = fxf.add(%x, 1, 2, 3)\nreturn"), ContainsSubstring("has 4 arguments"));
  CHECK_THAT(error_of(head + "%y: ?, %z: ? = fxf.add(%x, 1)\nreturn"), ContainsSubstring("has 2 outputs"));
  CHECK_THAT(error_of(head + "%y: ? = aten.f(%x)\nreturn\nwrite %y <- %x"), ContainsSubstring("no input or constant"));
  CHECK_THAT(error_of(head + "return \"open"), ContainsSubstring("a string is not closed"));
  CHECK_THAT(error_of(head + "return " + std::string(5000, '[')), ContainsSubstring("too deep nesting"));
  CHECK_THAT(error_of(head + "%y: float32[2]@cpu strides=[1, 2] = input\nreturn"), ContainsSubstring("differ in number"));
}

TEST_CASE("verify finds a graph that is out of order", "[text]") {
  Graph graph;
  const ValueId x = graph.add_input("x", std::nullopt);
  Node node;
  node.name = "a";
  node.target = "t.f";
  node.args = {ValueRef{x}};
  graph.add_node(node, 1);
  CHECK_NOTHROW(verify(graph));
  graph.nodes[0].args = {ValueRef{graph.nodes[0].outputs[0]}};
  CHECK_THROWS_WITH(verify(graph), "node a (t.f) reads a before it is made");
  graph.nodes[0].args = {AttrList{ValueRef{77}}};
  CHECK_THROWS_WITH(verify(graph), "node a (t.f) reads unknown value 77");
}
