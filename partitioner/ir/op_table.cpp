#include "partitioner/ir/op_table.h"

#include <algorithm>

#include "partitioner/ir/error.h"
#include "partitioner/ir/row_loader.h"

namespace fxfuser::embedded {
extern std::string_view ops_json();
}

namespace fxfuser::ir {

OpTable OpTable::from_json(std::string_view text, std::string_view source) {
  OpTable table;
  table.add_json(text, source);
  return table;
}

void OpTable::add_json(std::string_view text, std::string_view source) {
  std::vector<std::unique_ptr<OpRow>> rows = load_rows(text, source);
  // Everything is checked before anything is added, so a bad row leaves the table as it was.
  std::map<std::string_view, const OpRow*> fresh_names, fresh_targets;
  for (const auto& row : rows) {
    FXF_CHECK(find(row->op) == nullptr && fresh_names.emplace(row->op, row.get()).second, Value, "{}: row {} is there twice", source,
              row->op);
    for (const OpTarget& target : row->targets) {
      FXF_CHECK(find_target(target.target).first == nullptr && fresh_targets.emplace(target.target, row.get()).second, Value,
                "{}: row {}: target {} has a row already", source, row->op, target.target);
    }
  }
  for (auto& row : rows) {
    by_name_[row->op] = row.get();
    for (const OpTarget& target : row->targets) by_target_[target.target] = {row.get(), &target};
    rows_.push_back(std::move(row));
  }
}

const OpRow* OpTable::find(std::string_view op) const {
  const auto found = by_name_.find(op);
  return found == by_name_.end() ? nullptr : found->second;
}

std::pair<const OpRow*, const OpTarget*> OpTable::find_target(std::string_view target) const {
  const auto found = by_target_.find(std::string(target));
  return found == by_target_.end() ? std::pair<const OpRow*, const OpTarget*>{} : found->second;
}

void OpTable::bind(Graph& graph) const {
  for (Node& node : graph.nodes) {
    if (node.kind != NodeKind::Op) continue;
    if (node.target.starts_with("fxf.")) {
      node.row = find(std::string_view(node.target).substr(4));
      node.form = nullptr;
    } else {
      std::tie(node.row, node.form) = find_target(node.target);
    }
  }
}

std::string_view embedded_ops_json() { return embedded::ops_json(); }

}  // namespace fxfuser::ir
