#pragma once
// Node -> verdict. The policy is data (configs/capability.json: kinds, dtypes, cast pairs, devices, denied ops); the rows'
// own dtype sets and checks are asked for each node, with the whole node in view (both dtypes of a cast, a memory format, a
// scalar's value).

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "partitioner/ir/graph.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/reason.h"

namespace fxfuser::partitioner {

/// A predicate over a bound node; metas of its inputs and outputs are in the graph (forecasts).
using Check = std::function<Support(const ir::Graph&, const ir::Node&)>;

class CapabilityTable {
 public:
  /// Reads one mode of the policy file; `source` names it in errors. Throws Error(Value) on anything unknown.
  static CapabilityTable from_json(std::string_view text, std::string_view source, std::string_view mode = "default");
  /// A check that rows may name; replaces one of the same name.
  void register_check(std::string name, Check check);
  /// Throws Error(Value) naming the row, and what there is, when one names a check, a decomposition or a functional row that there
  /// is not. `present` holds the rows that these will stand beside.
  void validate(const ir::OpTable& table, const ir::OpTable* present = nullptr) const;

  /// The verdict on one node. `skip` holds targets or row names that the caller excluded.
  Support classify(const ir::Graph& graph, const ir::Node& node, const std::set<std::string>& skip = {}) const;
  /// All nodes, by NodeId.
  std::vector<Support> classify_all(const ir::Graph& graph, const std::set<std::string>& skip = {}) const;

 private:
  Support check_policy(const ir::Node& node, const std::set<std::string>& skip) const;
  Support check_dtype(const ir::OpRow& row, ir::DType dtype, std::string_view value) const;
  Support check_operands(const ir::Graph& graph, const ir::Node& node) const;
  Support check_results(const ir::Graph& graph, const ir::Node& node) const;
  Support check_devices(const ir::Graph& graph, const ir::Node& node) const;
  Support check_casts(const ir::Graph& graph, const ir::Node& node) const;

  std::set<ir::DType> dtypes_;
  std::set<ir::DType> storage_dtypes_;  // only moved and cast, never computed in: float8
  std::set<std::pair<ir::DType, ir::DType>> denied_casts_;
  std::set<std::string> denied_ops_;
  std::set<ir::DeviceKind> devices_;
  std::map<std::string, Check, std::less<>> checks_;
};

/// configs/capability.json as embedded at build.
std::string_view embedded_capability_json();

}  // namespace fxfuser::partitioner
