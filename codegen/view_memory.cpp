#include "codegen/view_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "partitioner/ir/infer_view.h"
#include "partitioner/ir/op_table.h"

namespace fxfuser::codegen {

std::optional<ir::Sizes> reshaped_strides(const ir::Sizes& from, const ir::Sizes& strides, const ir::Sizes& sizes) {
  if (std::find(from.begin(), from.end(), 0) != from.end()) return ir::contiguous_strides(sizes);
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // size and stride, innermost first
  for (std::size_t d = from.size(); d-- > 0;)
    if (from[d] != 1) dims.emplace_back(from[d], strides[d]);
  ir::Sizes out(sizes.size(), 1);
  std::size_t to = sizes.size();
  for (std::size_t d = 0; d < dims.size();) {
    auto [run, base] = dims[d++];  // old dims that lie as one
    while (d < dims.size() && dims[d].second == run * base) run *= dims[d++].first;
    std::int64_t filled = 1;
    while (to > 0 && (filled < run || sizes[to - 1] == 1)) {
      out[to - 1] = filled * base;
      filled *= sizes[--to];
    }
    if (filled != run) return std::nullopt;
  }
  return out;
}

namespace {

ir::Sizes permuted(const ir::Node& node, const ir::Sizes& strides) {
  ir::Sizes out;
  for (const std::int64_t dim : ir::arg(node, "dims").as_sizes()) out.push_back(strides[ir::wrap_dim(dim, strides.size())]);
  return out;
}

ir::Sizes expanded(const ir::Sizes& from, const ir::Sizes& strides, const ir::Sizes& to) {
  ir::Sizes out(to.size(), 0);
  const std::size_t shift = to.size() - from.size();
  for (std::size_t d = 0; d < from.size(); ++d) out[d + shift] = from[d] == to[d + shift] ? strides[d] : 0;
  return out;
}

}  // namespace

std::optional<ViewMemory> memory_of(const ir::Graph& graph, ir::ValueId value, const std::function<bool(ir::ValueId)>& is_view) {
  if (!is_view(value)) return ViewMemory{value, graph.meta(value).strides};
  const ir::Node& node = graph.node(graph.value(value).producer);
  const ir::ValueId self = ir::arg(node, "self").value();
  std::optional<ViewMemory> memory = memory_of(graph, self, is_view);
  if (!memory) return std::nullopt;
  const ir::Sizes &from = graph.meta(self).sizes, &to = graph.meta(value).sizes;
  const std::string& op = node.row->op;
  if (op == "permute") {
    memory->strides = permuted(node, memory->strides);
  } else if (op == "expand") {
    memory->strides = expanded(from, memory->strides, to);
  } else if (op == "reshape") {
    std::optional<ir::Sizes> strides = reshaped_strides(from, memory->strides, to);
    if (!strides) return std::nullopt;
    memory->strides = std::move(*strides);
  } else {
    return std::nullopt;  // a slice or a flip
  }
  return memory;
}

}  // namespace fxfuser::codegen
