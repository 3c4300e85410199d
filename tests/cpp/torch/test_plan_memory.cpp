// Placement of values in a block: those that live at the same time never lie on one another, whatever the lifetimes; and what a
// call allocates for temporaries, counted by the allocator's own reports.

#include <ATen/ATen.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <random>

#include "executor/interface/entry.h"
#include "executor/placement.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using executor::Lifetime;
using ir::Attr;
using ir::ValueId;
using ir::ValueRef;

namespace {

std::uint32_t below(std::mt19937& random, std::size_t limit) { return static_cast<std::uint32_t>(random() % limit); }

std::vector<Lifetime> random_lifetimes(std::mt19937& random, std::size_t count, std::uint32_t steps) {
  std::vector<Lifetime> values(count);
  for (Lifetime& value : values) {
    const std::uint32_t first = below(random, steps), length = below(random, below(random, 4) == 0 ? steps : 4);
    value = {first, std::min(steps - 1, first + length), 64 * std::int64_t{below(random, 40)}};
  }
  return values;
}

/// The most bytes that live at one step: no placement needs less.
std::int64_t most_alive(const std::vector<Lifetime>& values, std::uint32_t steps) {
  std::int64_t most = 0;
  for (std::uint32_t s = 0; s < steps; ++s) {
    std::int64_t alive = 0;
    for (const Lifetime& value : values) alive += value.first <= s && s <= value.last ? value.bytes : 0;
    most = std::max(most, alive);
  }
  return most;
}

/// Counts what the calling thread's tensors take on the CPU.
class Counting final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    alive += size;
    most = std::max(most, alive);
    allocations += size > 0 ? 1 : 0;
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t alive = 0, most = 0;
  int allocations = 0;
};

ValueId add_call(ImportedGraph& imported, const std::string& target, std::vector<Attr> args) {
  ir::Node node;
  node.name = "n" + std::to_string(imported.graph.nodes.size());
  node.target = target;
  node.args = std::move(args);
  node.origin = static_cast<std::uint32_t>(imported.graph.nodes.size());
  imported.alias.push_back({{}, {-1}});
  const ValueId output = imported.graph.nodes[imported.graph.add_node(std::move(node), 1)].outputs[0];
  imported.graph.values[output].meta = ir::contiguous(ir::DType::Float32, {}, {64, 64});
  return output;
}

/// x -> (op, digamma) `pairs` times: each result of a kernel is read by one ATen call.
ImportedGraph chain(int pairs) {
  ImportedGraph imported;
  ValueId value = imported.graph.add_input("x", ir::contiguous(ir::DType::Float32, {}, {64, 64}));
  for (int i = 0; i < pairs; ++i) value = add_call(imported, "aten.digamma.default", {ValueRef{add_call(imported, "aten.sigmoid.default", {ValueRef{value}})}});
  imported.graph.outputs = {ValueRef{value}};
  return imported;
}

}  // namespace

TEST_CASE("values that live at the same time never overlap, and little room is lost", "[memory]") {
  std::mt19937 random(7);
  double lost = 0;
  constexpr int kRounds = 400;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint32_t steps = 1 + below(random, 60);
    const std::vector<Lifetime> values = random_lifetimes(random, below(random, 80), steps);
    const executor::Placement placed = executor::place(values);
    REQUIRE(placed.offsets.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      REQUIRE((placed.offsets[i] >= 0 && placed.offsets[i] % 64 == 0 && placed.offsets[i] + values[i].bytes <= placed.bytes));
      for (std::size_t j = 0; j < i; ++j) {
        const bool at_once = values[i].first <= values[j].last && values[j].first <= values[i].last;
        const bool apart = placed.offsets[i] + values[i].bytes <= placed.offsets[j] || placed.offsets[j] + values[j].bytes <= placed.offsets[i];
        REQUIRE((!at_once || apart || values[i].bytes == 0 || values[j].bytes == 0));
      }
    }
    const std::int64_t least = most_alive(values, steps);
    REQUIRE(placed.bytes >= least);
    if (least > 0) lost += static_cast<double>(placed.bytes) / static_cast<double>(least) - 1;
  }
  CHECK(lost / kRounds < 0.05);
}

TEST_CASE("temporaries of a call are one allocation", "[memory]") {
  constexpr int kPairs = 6;
  Service& service = *fxfuser_codegen_entry()->service();
  const auto program = service.import(chain(kPairs));
  const auto options = service.parse_options("nvfuser", {{"on_error", Attr(std::string("raise"))}}).options;
  const at::Tensor x = at::rand({64, 64}) + 1;
  const std::vector<c10::IValue> inputs{x};
  std::vector<c10::IValue> outputs;
  program->run(options, inputs, outputs);
  at::Tensor expected = x;
  for (int i = 0; i < kPairs; ++i) expected = at::digamma(at::sigmoid(expected));
  for (int call = 0; call < 3; ++call) {
    outputs.clear();
    const std::uint64_t launches = service.stats().launches_host;
    const auto counting = std::make_shared<Counting>();
    {
      const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counting);
      program->run(options, inputs, outputs);
    }
    CHECK(service.stats().launches_host == launches + kPairs);
    CHECK(at::allclose(outputs.at(0).toTensor(), expected));
    constexpr std::int64_t kBytes = 64 * 64 * 4;
    CHECK(counting->allocations == kPairs + 1);  // each ATen result, and the block
    CHECK(counting->alive == kBytes);            // the result: the block is gone with the call
    CHECK(counting->most <= 3 * kBytes);         // a value, and what is computed from it
    CHECK(outputs.at(0).toTensor().storage().nbytes() == kBytes);
  }
}
