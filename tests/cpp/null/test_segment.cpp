#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "codegen/segment.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/ir/text.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using codegen::ArchInfo;
using codegen::ScheduleKind;
using codegen::Segmented;
using ir::Graph;

namespace {

constexpr std::string_view kRows = R"json({"rows": [
{"op": "add", "params": "self other", "kind": "pointwise", "dtypes": "number", "result": "default", "expr": "{self} + {other}"},
{"op": "sub", "params": "self other", "kind": "pointwise", "dtypes": "number", "result": "default", "expr": "{self} - {other}"},
{"op": "mul", "params": "self other", "kind": "pointwise", "dtypes": "number", "result": "default", "expr": "{self} * {other}"},
{"op": "div", "params": "self other", "kind": "pointwise", "dtypes": "float", "result": "int_to_float", "expr": "{self} / {other}"},
{"op": "exp", "params": "self", "kind": "pointwise", "dtypes": "float", "result": "int_to_float", "expr": "exp({self})", "cost": [2, 1]},
{"op": "erf", "params": "self", "kind": "pointwise", "dtypes": "float", "result": "int_to_float", "expr": "erf({self})", "cost": [20, 1]},
{"op": "rsqrt", "params": "self", "kind": "pointwise", "dtypes": "float", "result": "int_to_float", "expr": "rsqrt({self})", "cost": [1, 1]},
{"op": "cast", "params": "self dtype", "kind": "cast", "dtypes": "any", "result": "attr:dtype"},
{"op": "sum", "params": "self dims keepdim", "kind": "reduction", "dtypes": "any", "result": "bool_to_long", "pre": "{self}", "init": "0", "fold": "{a} + {b}", "post": "{acc}"},
{"op": "amax", "params": "self dims keepdim", "kind": "reduction", "dtypes": "number", "result": "same", "pre": "{self}", "init": "-inf", "fold": "max({a}, {b})", "post": "{acc}"},
{"op": "permute", "params": "self dims", "kind": "view", "result": "same"},
{"op": "reshape", "params": "self shape", "kind": "view", "result": "same"},
{"op": "expand", "params": "self shape", "kind": "view", "result": "same"},
{"op": "slice", "params": "self dim start end step", "kind": "view", "result": "same"},
{"op": "full", "params": "shape value dtype", "kind": "factory", "result": "attr:dtype"}
]})json";

const ir::OpTable& table() {
  static const ir::OpTable made = ir::OpTable::from_json(kRows, "test rows");
  return made;
}

Graph parse(std::string_view text) {
  return ir::parse_graph(text, table());
}

Segmented cut(const Graph& graph, const ArchInfo& arch = ArchInfo::h200()) {
  return codegen::segment(graph, arch, {});
}

/// What every segmentation must hold, whatever it chose.
void check_sound(const Graph& graph, const Segmented& cut) {
  REQUIRE_FALSE(cut.refusal.has_value());
  std::set<ir::ValueId> there(graph.inputs.begin(), graph.inputs.end());
  for (const ir::Constant& constant : graph.constants) there.insert(constant.value);
  for (const codegen::Segment& segment : cut.segments) {
    REQUIRE(std::is_sorted(segment.nodes.begin(), segment.nodes.end()));
    REQUIRE(std::is_sorted(segment.outputs.begin(), segment.outputs.end()));
    REQUIRE_FALSE(segment.outputs.empty());
    for (const auto& input : segment.fusion.inputs) REQUIRE(there.count(input.value) == 1);  // runs after what it reads
    REQUIRE(segment.fusion.outputs.size() == segment.outputs.size());
    for (const ir::ValueId output : segment.outputs) {
      REQUIRE(there.insert(output).second);  // stored once
      REQUIRE(std::binary_search(segment.nodes.begin(), segment.nodes.end(), graph.value(output).producer));
    }
  }
  for (const auto& [output, source] : cut.aliases) {
    REQUIRE(there.count(source) == 1);
    there.insert(output);
  }
  ir::for_each_value(graph.outputs, [&](ir::ValueId id) { REQUIRE(there.count(id) == 1); });
}

std::string describe(const Graph& graph, const Segmented& cut) {
  std::string text = cut.refusal ? "refused: " + partitioner::to_string(*cut.refusal) + "\n" : "";
  for (const codegen::Segment& segment : cut.segments) {
    text += codegen::to_string(segment.schedule) + "\n ";
    for (const ir::NodeId node : segment.nodes) text += " " + graph.node(node).name;
    text += "\n";
  }
  return text;
}

constexpr std::string_view kLayerNorm = R"(graph layer_norm
%x: bfloat16[4096, 1024]@cuda:0 = input
%r: bfloat16[4096, 1024]@cuda:0 = input
%w: bfloat16[1024]@cuda:0 = input
%b: bfloat16[1024]@cuda:0 = input
%h: bfloat16[4096, 1024]@cuda:0 = fxf.add(%x, %r)
%s: bfloat16[4096, 1]@cuda:0 = fxf.sum(%h, [1], True)
%m: bfloat16[4096, 1]@cuda:0 = fxf.mul(%s, 0.0009765625)
%c: bfloat16[4096, 1024]@cuda:0 = fxf.sub(%h, %m)
%q: bfloat16[4096, 1024]@cuda:0 = fxf.mul(%c, %c)
%t: bfloat16[4096, 1]@cuda:0 = fxf.sum(%q, [1], True)
%v: bfloat16[4096, 1]@cuda:0 = fxf.mul(%t, 0.0009765625)
%e: bfloat16[4096, 1]@cuda:0 = fxf.add(%v, 1e-05)
%i: bfloat16[4096, 1]@cuda:0 = fxf.rsqrt(%e)
%n: bfloat16[4096, 1024]@cuda:0 = fxf.mul(%c, %i)
%g: bfloat16[4096, 1024]@cuda:0 = fxf.mul(%n, %w)
%o: bfloat16[4096, 1024]@cuda:0 = fxf.add(%g, %b)
%f: float32[4096, 1024]@cuda:0 = fxf.cast(%o, float32)
)";

constexpr std::string_view kSoftmax = R"(graph softmax
%x: bfloat16[64, 1024, 1024]@cuda:0 = input
%mask: float32[1024, 1024]@cuda:0 = input
%k: bfloat16[64, 1024, 1024]@cuda:0 = fxf.mul(%x, 0.125)
%z: float32[64, 1024, 1024]@cuda:0 = fxf.add(%k, %mask)
%m: float32[64, 1024, 1]@cuda:0 = fxf.amax(%z, [2], True)
%c: float32[64, 1024, 1024]@cuda:0 = fxf.sub(%z, %m)
%e: float32[64, 1024, 1024]@cuda:0 = fxf.exp(%c)
%s: float32[64, 1024, 1]@cuda:0 = fxf.sum(%e, [2], True)
%d: float32[64, 1024, 1024]@cuda:0 = fxf.div(%e, %s)
%o: bfloat16[64, 1024, 1024]@cuda:0 = fxf.cast(%d, bfloat16)
return %o
)";

}  // namespace

TEST_CASE("layer norm with the add before and the cast after is one segment", "[segment]") {
  const Graph graph = parse(std::string(kLayerNorm) + "return %f, %h\n");
  for (const ArchInfo& arch : {ArchInfo::h200(), ArchInfo::host(2)}) {
    const Segmented result = cut(graph, arch);
    INFO(describe(graph, result));
    check_sound(graph, result);
    REQUIRE(result.segments.size() == 1);
    CHECK(result.segments[0].schedule.kind == ScheduleKind::Normalization);
    CHECK(result.segments[0].fusion.inputs.size() == 4);
    CHECK(result.segments[0].outputs.size() == 2);
  }
}

TEST_CASE("row values of a norm that are outputs stay in its segment", "[segment]") {
  const Graph graph = parse(std::string(kLayerNorm) + "return %f, %m, %i\n");
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  CHECK(result.segments.size() == 1);
}

TEST_CASE("masked, scaled softmax is one segment", "[segment]") {
  const Graph graph = parse(kSoftmax);
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  CHECK(result.segments.size() == 1);
}

TEST_CASE("a pointwise chain is one segment and keeps its outputs", "[segment]") {
  const Graph graph = parse(R"(graph gelu
%x: bfloat16[4096, 4096]@cuda:0 = input
%b: bfloat16[4096]@cuda:0 = input
%y: bfloat16[4096, 4096]@cuda:0 = fxf.add(%x, %b)
%h: bfloat16[4096, 4096]@cuda:0 = fxf.mul(%y, 0.7071067811865476)
%e: bfloat16[4096, 4096]@cuda:0 = fxf.erf(%h)
%p: bfloat16[4096, 4096]@cuda:0 = fxf.add(%e, 1)
%q: bfloat16[4096, 4096]@cuda:0 = fxf.mul(%y, %p)
%o: bfloat16[4096, 4096]@cuda:0 = fxf.mul(%q, 0.5)
return %o, %y
)");
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  REQUIRE(result.segments.size() == 1);
  CHECK(result.segments[0].schedule.kind == ScheduleKind::Pointwise);
}

Graph bias_grad(int columns) {
  return parse(fmt::format(R"(graph bias_grad
%x: bfloat16[8192, {0}]@cuda:0 = input
%f: float32[8192, {0}]@cuda:0 = fxf.cast(%x, float32)
%r: float32[8192]@cuda:0 = fxf.sum(%f, [1], False)
%c: float32[{0}]@cuda:0 = fxf.sum(%f, [0], False)
return %r, %c
)", columns));
}

TEST_CASE("a reduction over rows and one over columns are one segment", "[segment]") {
  const Graph graph = bias_grad(4096);
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  REQUIRE(result.segments.size() == 1);
  CHECK(result.segments[0].schedule.slabs > 0);
}

TEST_CASE("over rows too long for a block they are two segments, the cheap producer in both", "[segment]") {
  const Graph graph = bias_grad(65536);
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  REQUIRE(result.segments.size() == 2);
  for (const codegen::Segment& segment : result.segments) {
    CHECK(segment.schedule.kind == ScheduleKind::Reduction);
    CHECK(segment.nodes.size() == 2);
    CHECK(segment.outputs.size() == 1);  // the cast is stored by nobody
  }
}

TEST_CASE("readers of one large input run in one kernel", "[segment]") {
  const Graph graph = parse(R"(graph siblings
%x: float32[1024, 1024]@cuda:0 = input
%a: float32[1024, 1024]@cuda:0 = fxf.exp(%x)
%b: float32[1024, 1024]@cuda:0 = fxf.mul(%x, 3)
return %a, %b
)");
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  CHECK(result.segments.size() == 1);
}

TEST_CASE("views of inputs and of outputs are aliases, views of what is not stored are not", "[segment]") {
  const Graph graph = parse(R"(graph views
%x: float32[8, 16]@cpu = input
%t: float32[16, 8]@cpu strides=[1, 16] = fxf.permute(%x, [1, 0])
%y: float32[8, 16]@cpu = fxf.exp(%x)
%v: float32[128]@cpu = fxf.reshape(%y, [128])
%z: float32[8, 16]@cpu = fxf.mul(%x, 2)
%u: float32[4, 32]@cpu = fxf.reshape(%z, [4, 32])
%k: float32[128]@cpu = fxf.reshape(%t, [128])
return %x, %t, %y, %v, %u, %k
)");
  const Segmented result = cut(graph, ArchInfo::host(2));
  INFO(describe(graph, result));
  check_sound(graph, result);
  const auto id = [&](std::string_view name) {
    for (ir::ValueId v = 0; v < graph.values.size(); ++v)
      if (graph.value(v).name == name) return v;
    return ir::kNoValue;
  };
  const std::vector<std::pair<ir::ValueId, ir::ValueId>> aliases{{id("t"), id("x")}, {id("v"), id("y")}};
  CHECK(result.aliases == aliases);
  // %u is stored by the kernel that computes %z, %k has to move the data.
  std::set<ir::ValueId> stored;
  for (const codegen::Segment& segment : result.segments) stored.insert(segment.outputs.begin(), segment.outputs.end());
  CHECK(stored == std::set<ir::ValueId>{id("y"), id("u"), id("k")});
}

TEST_CASE("a graph that only hands views through has no segments", "[segment]") {
  const Graph graph = parse(R"(graph views
%x: float32[8, 16]@cpu = input
%t: float32[4, 32]@cpu = fxf.reshape(%x, [4, 32])
return %t, %x
)");
  const Segmented result = cut(graph, ArchInfo::host(2));
  check_sound(graph, result);
  CHECK(result.segments.empty());
  CHECK(result.aliases.size() == 1);
}

TEST_CASE("an expensive value over few elements is not computed again for each of many", "[segment]") {
  const Graph graph = parse(R"(graph broadcast
%w: float32[4096]@cuda:0 = input
%x: float32[16384, 4096]@cuda:0 = input
%a: float32[4096]@cuda:0 = fxf.erf(%w)
%b: float32[4096]@cuda:0 = fxf.erf(%a)
%c: float32[4096]@cuda:0 = fxf.erf(%b)
%d: float32[4096]@cuda:0 = fxf.erf(%c)
%y: float32[16384, 4096]@cuda:0 = fxf.mul(%x, %d)
return %y
)");
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  CHECK(result.segments.size() == 2);
}

TEST_CASE("a path around a group keeps it from closing a cycle", "[segment]") {
  // b needs the column sum of a, and a itself: one kernel can't hold a, the sum and b.
  const Graph graph = parse(R"(graph around
%x: float32[2048, 2048]@cuda:0 = input
%a: float32[2048, 2048]@cuda:0 = fxf.erf(%x)
%r: float32[2048, 1]@cuda:0 = fxf.sum(%a, [1], True)
%p: float32[2048, 2048]@cuda:0 = fxf.mul(%a, %r)
%c: float32[2048]@cuda:0 = fxf.sum(%p, [0], False)
%b: float32[2048, 2048]@cuda:0 = fxf.add(%p, %c)
return %b
)");
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
  CHECK(result.segments.size() >= 2);
  CHECK(result.segments.size() <= 3);
}

TEST_CASE("a factory belongs to each reader", "[segment]") {
  const Graph graph = parse(R"(graph ones
%x: float32[64, 64]@cuda:0 = input
%o: float32[64, 64]@cuda:0 = fxf.full([64, 64], 1.0, float32)
%y: float32[64, 64]@cuda:0 = fxf.add(%x, %o)
return %y, %o
)");
  const Segmented result = cut(graph);
  INFO(describe(graph, result));
  check_sound(graph, result);
}

namespace {

Graph chain(int length) {
  std::string text = "graph chain\n%v0: float32[1024, 1024]@cuda:0 = input\n";
  for (int i = 0; i < length; ++i)
    text += fmt::format("%v{}: float32[1024, 1024]@cuda:0 = fxf.add(%v{}, {})\n", i + 1, i, i % 7);
  return parse(text + fmt::format("return %v{}\n", length));
}

/// Random pointwise nodes, reductions and transposes over square tensors.
Graph random_graph(std::mt19937& random, int length) {
  const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::string text = "graph random\n%v0: float32[32, 32]@cuda:0 = input\n%v1: float32[32, 32]@cuda:0 = input\n";
  const std::string full = "float32[32, 32]@cuda:0";
  int next = 2;
  for (int i = 0; i < length; ++i) {
    const int recent = std::max(0, next - 8);
    const int a = recent + any(next - recent), b = any(next);
    switch (any(8)) {
      case 0:
        text += fmt::format("%r{0}: float32[32, 1]@cuda:0 = fxf.sum(%v{1}, [1], True)\n%v{0}: {2} = fxf.sub(%v{3}, %r{0})\n",
                            next, a, full, b);
        break;
      case 1:
        text += fmt::format("%c{0}: float32[32]@cuda:0 = fxf.amax(%v{1}, [0], False)\n%v{0}: {2} = fxf.add(%v{3}, %c{0})\n",
                            next, a, full, b);
        break;
      case 2:
        text += fmt::format(
            "%t{0}: float32[32, 32]@cuda:0 strides=[1, 32] = fxf.permute(%v{1}, [1, 0])\n"
            "%v{0}: {2} = fxf.mul(%t{0}, %v{3})\n",
            next, a, full, b);
        break;
      case 3:
        text += fmt::format("%v{}: {} = fxf.exp(%v{})\n", next, full, a);
        break;
      default:
        text += fmt::format("%v{}: {} = fxf.add(%v{}, %v{})\n", next, full, a, b);
    }
    ++next;
  }
  return parse(text + fmt::format("return %v{}, %v{}\n", next - 1, next / 2));
}

}  // namespace

TEST_CASE("random graphs are cut soundly and the same way each time", "[segment]") {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    const Graph graph = random_graph(random, 5 + i % 40);
    for (const ArchInfo& arch : {ArchInfo::toy(), ArchInfo::host(2)}) {
      const Segmented first = cut(graph, arch), again = cut(graph, arch);
      INFO(ir::print(graph) << describe(graph, first));
      check_sound(graph, first);
      REQUIRE(describe(graph, first) == describe(graph, again));
    }
  }
}

TEST_CASE("a chain of 2,000 nodes is cut in well under a second", "[segment]") {
  const Graph graph = chain(2000);
  const auto start = std::chrono::steady_clock::now();
  const Segmented result = cut(graph);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  check_sound(graph, result);
  CHECK(result.segments.size() <= 2000 / 30);
  CHECK(seconds < 0.5);
}
