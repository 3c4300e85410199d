// From verdicts to groups: capability, phases, partitions, pruning.

#include "partitioner/partition.h"

#include <algorithm>
#include <random>
#include <set>

#include "partitioner/capability.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/ir/text.h"
#include "partitioner/phase.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using namespace fxfuser::ir;
using namespace fxfuser::partitioner;

namespace {

const OpTable& rows() {
  static const OpTable table = OpTable::from_json(embedded_ops_json(), "configs/ops.json");
  return table;
}

const CapabilityTable& policy() {
  static const CapabilityTable table = CapabilityTable::from_json(embedded_capability_json(), "configs/capability.json");
  return table;
}

/// "a b | c": names of the nodes of each partition.
std::string groups(const Graph& graph, const std::vector<Partition>& partitions) {
  std::string text;
  for (const Partition& partition : partitions) {
    if (!text.empty()) text += " | ";
    for (std::size_t i = 0; i < partition.nodes.size(); ++i) text += (i == 0 ? "" : " ") + graph.node(partition.nodes[i]).name;
  }
  return text;
}

std::string grouped(const std::string& text, bool pruned = true, bool single = true) {
  const Graph graph = parse_graph(text, rows());
  std::vector<Partition> partitions = propose(graph, policy().classify_all(graph));
  PartitionOptions options;
  options.allow_single_op = single;
  if (pruned) prune(graph, partitions, options);
  return groups(graph, partitions);
}

std::string refusal(const std::string& text, const std::string& name, const std::set<std::string>& skip = {}) {
  const Graph graph = parse_graph(text, rows());
  for (const Node& node : graph.nodes) {
    if (node.name == name) {
      const Support support = policy().classify(graph, node, skip);
      return support.ok() ? "ok" : to_string(*support.refusal);
    }
  }
  return "no such node";
}

/// Every supported node is in one partition, and running each partition in one step leaves no cycle.
void check_partitions(const Graph& graph, const std::vector<Support>& support, const std::vector<Partition>& partitions) {
  std::vector<int> unit(graph.nodes.size(), -1);
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    for (NodeId id : partitions[p].nodes) {
      REQUIRE(unit[id] == -1);
      unit[id] = static_cast<int>(p);
    }
  }
  int units = static_cast<int>(partitions.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    REQUIRE((unit[id] >= 0) == support[id].ok());
    if (unit[id] < 0) unit[id] = units++;
  }
  std::vector<std::set<int>> next(static_cast<std::size_t>(units));
  std::vector<int> before(static_cast<std::size_t>(units), 0);
  const auto edge = [&](NodeId from, NodeId to) {
    if (unit[from] != unit[to] && next[static_cast<std::size_t>(unit[from])].insert(unit[to]).second) ++before[static_cast<std::size_t>(unit[to])];
  };
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    for_each_value(graph.nodes[id].args, [&](ValueId value) {
      if (graph.value(value).producer != kNoNode) edge(graph.value(value).producer, id);
    });
    for (NodeId earlier : graph.nodes[id].after) edge(earlier, id);
  }
  std::vector<int> ready;
  for (int u = 0; u < units; ++u) {
    if (before[static_cast<std::size_t>(u)] == 0) ready.push_back(u);
  }
  int done = 0;
  while (!ready.empty()) {
    const int u = ready.back();
    ready.pop_back();
    ++done;
    for (int v : next[static_cast<std::size_t>(u)]) {
      if (--before[static_cast<std::size_t>(v)] == 0) ready.push_back(v);
    }
  }
  REQUIRE(done == units);
}

}  // namespace

TEST_CASE("a chain is one group; an op without a row cuts it", "[partition]") {
  CHECK(grouped(R"(graph g
%x: float32[8]@cpu = input
%a: float32[8]@cpu = aten.sin.default(%x)
%b: float32[8]@cpu = aten.exp.default(%a)
return %b
)") == "a b");
  CHECK(grouped(R"(graph g
%x: float32[8, 8]@cpu = input
%a: float32[8, 8]@cpu = aten.sin.default(%x)
%m: float32[8, 8]@cpu = aten.mm.default(%a, %a)
%b: float32[8, 8]@cpu = aten.exp.default(%m)
%c: float32[8, 8]@cpu = aten.add.Tensor(%a, %b, 1)
return %c
)") == "a | b c");
}

TEST_CASE("no group may reach itself through what it leaves out", "[partition]") {
  // d needs both sides of the product: it may not join a.
  CHECK(grouped(R"(graph g
%x: float32[8, 8]@cpu = input
%a: float32[8, 8]@cpu = aten.sin.default(%x)
%m: float32[8, 8]@cpu = aten.mm.default(%a, %x)
%d: float32[8, 8]@cpu = aten.mul.Tensor(%a, %m)
%e: float32[8, 8]@cpu = aten.cos.default(%a)
return %d, %e
)") == "a e | d");
}

TEST_CASE("parts that share an input are one group; devices are apart", "[partition]") {
  CHECK(grouped(R"(graph g
%x: float32[8]@cpu = input
%a: float32[8]@cpu = aten.sin.default(%x)
%b: float32[8]@cpu = aten.cos.default(%x)
return %a, %b
)") == "a b");
  CHECK(grouped(R"(graph g
%x: float32[8]@cpu = input
%y: float32[8]@cuda:0 = input
%a: float32[8]@cpu = aten.sin.default(%x)
%b: float32[8]@cuda:0 = aten.cos.default(%y)
return %a, %b
)") == "a | b");
}

TEST_CASE("groups of metadata only and views at a border are left out", "[prune]") {
  CHECK(grouped(R"(graph g
%x: float32[8, 4]@cpu = input
%a: float32[4, 8]@cpu strides=[1, 4] = aten.t.default(%x)
%b: float32[32]@cpu = aten.reshape.default(%x, [32])
return %a, %b
)") == "");
  CHECK(grouped(R"(graph g
%x: float32[8, 4]@cpu = input
%v: float32[4, 8]@cpu strides=[1, 4] = aten.t.default(%x)
%a: float32[8, 4]@cpu = aten.sin.default(%x)
%w: float32[4, 8]@cpu strides=[1, 4] = aten.t.default(%a)
%b: float32[4, 8]@cpu strides=[1, 4] = aten.add.Tensor(%w, %v, 1)
%o: float32[8, 4]@cpu = aten.t.default(%b)
return %o
)") == "a w b");
}

TEST_CASE("allow_single_op=False counts ops that compute", "[prune]") {
  const std::string text = R"(graph g
%x: float32[8, 4]@cpu = input
%a: float32[8, 4]@cpu = aten.sin.default(%x)
%w: float32[4, 8]@cpu strides=[1, 4] = aten.t.default(%a)
return %w
)";
  CHECK(grouped(text, true, true) == "a");
  CHECK(grouped(text, true, false) == "");
}

TEST_CASE("verdicts name what was seen", "[capability]") {
  const std::string casts = R"(graph g
%x: float32[8]@cpu = input
%c: complex64[8]@cpu = input
%a: float16[8]@cpu = aten._to_copy.default(%x, float16, None, None, None, False, None)
%b: float32[8]@cpu = aten._to_copy.default(%c, float32, None, None, None, False, None)
%m: float32[8]@cpu = aten.digamma.default(%x)
%s: float32[8]@cpu = aten.sin.default(%x)
return %a, %b, %m, %s
)";
  CHECK(refusal(casts, "a") == "ok");
  CHECK(refusal(casts, "b").find("complex64") != std::string::npos);
  CHECK(refusal(casts, "m").find("no row") != std::string::npos);
  CHECK(refusal(casts, "m").find("aten.digamma.default") != std::string::npos);
  CHECK(refusal(casts, "s") == "ok");
  CHECK(refusal(casts, "s", {"aten.sin.default"}).find("denied") != std::string::npos);
  CHECK(refusal(casts, "s", {"sin"}).find("denied") != std::string::npos);
}

TEST_CASE("the policy file is read strictly", "[capability]") {
  const auto message = [](const std::string& json) {
    try {
      CapabilityTable::from_json(json, "test.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(message("{").find("test.json") != std::string::npos);
  CHECK(message(R"({"modes":{}})").find("test.json") != std::string::npos);
}

TEST_CASE("random graphs: groups are disjoint, complete and free of cycles", "[partition][property]") {
  std::mt19937 random(20261201);
  const auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int round = 0; round < 300; ++round) {
    const int nodes = 5 + pick(60);
    std::string text = "graph g\n%x: float32[4, 4]@cpu = input\n%y: float32[4, 4]@cuda:0 = input\n";
    std::vector<std::string> cpu = {"x"}, cuda = {"y"};
    for (int i = 0; i < nodes; ++i) {
      const bool on_cuda = pick(5) == 0;
      std::vector<std::string>& values = on_cuda ? cuda : cpu;
      const std::string device = on_cuda ? "cuda:0" : "cpu", name = "n" + std::to_string(i);
      const std::string a = values[static_cast<std::size_t>(pick(static_cast<int>(values.size())))];
      const std::string b = values[static_cast<std::size_t>(pick(static_cast<int>(values.size())))];
      const int kind = pick(8);
      text += "%" + name + ": float32[4, 4]@" + device + " = ";
      if (kind == 0) text += "aten.mm.default(%" + a + ", %" + b + ")";
      else if (kind == 1) text += "aten._to_copy.default(%" + (on_cuda ? cpu : cuda)[0] + ", None, None, @" + device + ", None, False, None)";
      else if (kind == 2) text += "aten.view.default(%" + a + ", [4, 4])";
      else if (kind < 5) text += "aten.sin.default(%" + a + ")";
      else text += "aten.add.Tensor(%" + a + ", %" + b + ", 1)";
      if (i > 3 && pick(6) == 0) text += " {after=[" + std::to_string(pick(i)) + "]}";
      text += "\n";
      values.push_back(name);
    }
    text += "return %" + cpu.back() + ", %" + cuda.back() + "\n";
    const Graph graph = parse_graph(text, rows());
    const std::vector<Support> support = policy().classify_all(graph);
    INFO(text);
    std::vector<Partition> partitions = propose(graph, support);
    check_partitions(graph, support, partitions);
    const auto users = users_of(graph);
    const PhaseLabels labels = label_phases(graph, support, users);
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      for_each_value(graph.nodes[id].args, [&](ValueId value) {
        const NodeId producer = graph.value(value).producer;
        if (producer != kNoNode) REQUIRE(labels.phase[producer] <= labels.phase[id]);
      });
    }
    // Pruning only takes away, and inputs and outputs are what the rest reads.
    PartitionOptions options;
    const auto grouped_nodes = [&] {
      std::size_t count = 0;
      for (const Partition& partition : partitions) count += partition.nodes.size();
      return count;
    };
    const std::size_t before = grouped_nodes();
    const std::size_t left_out = prune(graph, partitions, options).size();
    REQUIRE(grouped_nodes() + left_out == before);
    for (const Partition& partition : partitions) {
      const std::set<NodeId> inside(partition.nodes.begin(), partition.nodes.end());
      for (ValueId input : partition.inputs) REQUIRE(inside.count(graph.value(input).producer) == 0);
      for (ValueId output : partition.outputs) REQUIRE(inside.count(graph.value(output).producer) == 1);
    }
  }
}
