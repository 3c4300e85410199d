// Definitions from C++, without Python: ops from the table, replayed once, run in generated kernels.

#include <ATen/ATen.h>

#include "executor/frontend/catalog.h"
#include "executor/frontend/definition.h"
#include "executor/frontend/run_fusion.h"
#include "executor/interface/entry.h"
#include "partitioner/ir/error.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using namespace fxfuser::frontend;

namespace {

Service& library() { return *fxfuser_codegen_entry()->service(); }

const Catalog& catalog() {
  static const Catalog ops(library().op_table());
  return ops;
}

/// relu(x * 2 + y) summed over the last dim.
std::shared_ptr<Fusion> chain(FusionCache& cache, double factor = 2.0) {
  const auto fd = FusionDefinition::make(catalog());
  fd->enter();
  const Handle x = fd->define_tensor(2), y = fd->define_tensor(1);
  const Handle scaled = fd->call("mul", {x, fd->define_constant(factor)});
  const Handle sum = fd->call("add", {scaled, fd->call("broadcast_in_dim", {y, std::vector<Argument>{-1, -1}, std::vector<Argument>{1}})});
  fd->add_output(fd->call("sum", {fd->call("relu", {sum}), std::vector<Argument>{-1}}));
  return fd->exit(cache);
}

RunArguments fused() { return {library().parse_options("nvfuser", {{"on_error", ir::Attr("raise")}}).options, false, {}}; }

}  // namespace

TEST_CASE("a definition made in C++ runs in generated kernels", "[definition]") {
  FusionCache cache;
  const auto fusion = chain(cache);
  const at::Tensor x = at::randn({4, 6}), y = at::randn({6});
  const std::uint64_t before = library().stats().launches_host;
  const std::vector<c10::IValue> inputs{x, y};
  const auto outputs = run_fusion(library(), catalog(), *fusion, inputs, fused());
  CHECK(at::allclose(outputs.at(0).toTensor(), (x * 2 + y).relu().sum(-1)));
  CHECK(library().stats().launches_host > before);
}

TEST_CASE("equal definitions are one fusion, others are not", "[definition]") {
  FusionCache cache;
  CHECK(chain(cache)->id() == chain(cache)->id());
  CHECK(chain(cache)->id() != chain(cache, 3.0)->id());
  CHECK(cache.stats().hits == 2);
  CHECK(cache.stats().size == 2);
}

TEST_CASE("inputs are checked against the definition by index", "[definition]") {
  FusionCache cache;
  const auto fusion = chain(cache);
  const auto message = [&](std::vector<c10::IValue> inputs) {
    try {
      run_fusion(library(), catalog(), *fusion, inputs, fused());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(message({at::randn({4, 6})}), ContainsSubstring("takes 2 inputs, 1 were given"));
  CHECK_THAT(message({at::randn({4, 6}), at::randn({6}).to(at::kDouble)}), ContainsSubstring("input 1 (T1) is defined as Float, a tensor of Double"));
  CHECK_THAT(message({at::randn({6}), at::randn({6})}), ContainsSubstring("input 0 (T0) is defined with 2 dims, a tensor with 1"));
}
