// Index maps proved by counting: random chains of views are fused, the fusion's whole space is walked, and every output element
// must be written exactly once, from the input element that the views, applied one by one, put there.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <random>

#include "codegen/build_fusion.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/ir/text.h"
#include "tests/cpp/catch.h"

using namespace fxfuser;
using codegen::Affine;
using codegen::Fusion;
using Sizes = std::vector<std::int64_t>;

namespace {

const ir::OpTable& rows() {
  static const ir::OpTable table = ir::OpTable::from_json(ir::embedded_ops_json(), "configs/ops.json");
  return table;
}

std::int64_t product(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()); }

Sizes unravel(std::int64_t linear, const Sizes& sizes) {
  Sizes index(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    index[d] = linear % sizes[d];
    linear /= sizes[d];
  }
  return index;
}

std::int64_t ravel(const Sizes& index, const Sizes& sizes) {
  std::int64_t linear = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) linear = linear * sizes[d] + index[d];
  return linear;
}

/// A dense tensor whose elements say which input element they are.
struct Tracked {
  Sizes sizes;
  Sizes origin;

  template <typename From>
  Tracked moved(const Sizes& to, From&& from) const {
    Tracked out{to, Sizes(static_cast<std::size_t>(product(to)))};
    for (std::int64_t i = 0; i < product(to); ++i) {
      out.origin[static_cast<std::size_t>(i)] = origin[static_cast<std::size_t>(ravel(from(unravel(i, to)), sizes))];
    }
    return out;
  }
};

/// One random view: its text and its effect.
std::pair<std::string, Tracked> random_view(std::mt19937& random, const Tracked& x) {
  const auto pick = [&](std::int64_t below) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below)); };
  const std::size_t rank = x.sizes.size();
  const auto kind = pick(5);
  if (kind == 0 && rank > 1) {
    Sizes order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Sizes to;
    for (std::int64_t d : order) to.push_back(x.sizes[static_cast<std::size_t>(d)]);
    return {fmt::format("fxf.permute(%IN, [{}])", fmt::join(order, ", ")), x.moved(to, [&](const Sizes& at) {
              Sizes from(rank);
              for (std::size_t d = 0; d < rank; ++d) from[static_cast<std::size_t>(order[d])] = at[d];
              return from;
            })};
  }
  if (kind == 1 && rank > 0) {
    const auto d = static_cast<std::size_t>(pick(static_cast<std::int64_t>(rank)));
    const std::int64_t start = pick(x.sizes[d]), step = 1 + pick(2);
    Sizes to = x.sizes;
    to[d] = (x.sizes[d] - start + step - 1) / step;
    return {fmt::format("fxf.slice(%IN, {}, {}, {}, {})", d, start, x.sizes[d], step), x.moved(to, [&](Sizes at) {
              at[d] = start + at[d] * step;
              return at;
            })};
  }
  if (kind == 2 && rank > 0) {
    const auto d = static_cast<std::size_t>(pick(static_cast<std::int64_t>(rank)));
    return {fmt::format("fxf.flip(%IN, [{}])", d), x.moved(x.sizes, [&](Sizes at) {
              at[d] = x.sizes[d] - 1 - at[d];
              return at;
            })};
  }
  if (kind == 3 && product(x.sizes) <= 64) {
    Sizes to = {2};
    to.insert(to.end(), x.sizes.begin(), x.sizes.end());
    return {fmt::format("fxf.expand(%IN, [{}])", fmt::join(to, ", ")), x.moved(to, [&](Sizes at) {
              at.erase(at.begin());
              return at;
            })};
  }
  // A reshape: the factors of the elements, dealt out anew.
  Sizes to = {1};
  std::int64_t rest = product(x.sizes);
  for (std::int64_t factor = 2; rest > 1;) {
    if (rest % factor != 0) {
      ++factor;
      continue;
    }
    rest /= factor;
    if (pick(2) == 0) to.push_back(factor);
    else to.back() *= factor;
  }
  Tracked out = x;
  out.sizes = to;
  return {fmt::format("fxf.reshape(%IN, [{}])", fmt::join(to, ", ")), out};
}

std::string meta(const Sizes& sizes) { return fmt::format("float32[{}]@cpu", fmt::join(sizes, ", ")); }

std::int64_t at(const Affine& form, const Sizes& index) {
  std::int64_t value = form.offset;
  for (std::size_t axis = 0; axis < index.size(); ++axis) value += form.coeff[axis] * index[axis];
  return value;
}

/// Walks a fusion of one load and one output; -1 where nothing was written, -2 where something was written twice.
Sizes walk(const Fusion& fusion, std::int64_t elements) {
  Sizes sizes, out(static_cast<std::size_t>(elements), -1);
  for (const codegen::Axis& axis : fusion.axes) sizes.push_back(axis.size);
  const codegen::Expr* load = nullptr;
  for (const codegen::Expr& expr : fusion.body) {
    if (expr.kind != codegen::ExprKind::Load) continue;
    REQUIRE(load == nullptr);
    load = &expr;
  }
  REQUIRE(load != nullptr);
  for (std::int64_t point = 0; point < product(sizes); ++point) {
    const Sizes index = unravel(point, sizes);
    const std::int64_t to = at(fusion.outputs.at(0).form, index);
    REQUIRE(to >= 0);
    REQUIRE(to < elements);
    std::int64_t& cell = out[static_cast<std::size_t>(to)];
    cell = cell == -1 ? at(load->form, index) : -2;
  }
  return out;
}

}  // namespace

TEST_CASE("index maps of random view chains", "[index_map][property]") {
  std::mt19937 random(7);
  int fused = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const std::vector<Sizes> shapes = {{12}, {4, 6}, {2, 3, 4}, {1, 5, 2}, {8, 1, 3}, {2, 2, 2, 3}, {30}};
    const Sizes shape = shapes[random() % shapes.size()];
    Tracked value{shape, Sizes(static_cast<std::size_t>(product(shape)))};
    std::iota(value.origin.begin(), value.origin.end(), 0);
    std::string text = "graph views\n%x: " + meta(shape) + " = input\n", last = "x";
    const int steps = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < steps; ++i) {
      auto [call, next] = random_view(random, value);
      call.replace(call.find("IN"), 2, last);
      value = std::move(next);
      last = "v" + std::to_string(i);
      text += fmt::format("%{}: {} = {}\n", last, meta(value.sizes), call);
    }
    text += fmt::format("%y: {} = fxf.neg(%{})\nreturn %y\n", meta(value.sizes), last);
    INFO(text);
    const ir::Graph graph = ir::parse_graph(text, rows());
    std::vector<ir::NodeId> nodes(graph.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0u);
    const codegen::FusionOrReason built = codegen::build_fusion(graph, nodes, {graph.outputs[0].value()});
    if (std::holds_alternative<partitioner::Reason>(built)) {
      ++refused;
      continue;
    }
    ++fused;
    REQUIRE(walk(std::get<Fusion>(built), product(value.sizes)) == value.origin);
  }
  // Some reshapes of permuted or sliced dims have no refinement; most do.
  CHECK(fused > 1000);
  CHECK(refused > 0);
}
