#pragma once
// Records -> the graph that an import of the same computation would give: ATen overloads with their arguments in schema order.
// Runs once a definition that is not in the cache (and once more for each device that its factories make tensors on).

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/frontend/record.h"
#include "executor/frontend/signature.h"

namespace fxfuser::frontend {

struct Replayed {
  ir::Graph graph;
  std::vector<partitioner::AliasInfo> alias;  // one a node
};

/// `device`: where ops without a tensor argument make theirs.
Replayed replay(const std::vector<Record>& records, const OpSource& ops, const ir::Device& device, std::string name);

using Named = std::map<std::string, ir::Attr, std::less<>>;

class Replayer {
 public:
  Replayer(const OpSource& ops, const ir::Device& device, std::string name);

  // What records call.
  void tensor(const TensorRecord& record);
  void scalar();
  void constant(const ir::Attr& value);
  void op(const OpRecord& record);
  void output(const OutputRecord& record);

  // What composites are made of. Arguments are the graph's own values, parameters have the row's names.
  std::vector<ir::Attr> calls(std::string_view row, const Named& args);
  ir::Attr call(std::string_view row, const Named& args) { return calls(row, args).at(0); }
  /// The host's arithmetic on numbers and sizes; at once where both are known.
  ir::Attr host(std::string target, std::vector<ir::Attr> args);
  /// The size of a dim as a number.
  ir::Attr size(const ir::Attr& tensor, std::int64_t dim);
  /// Throws Error(Runtime) when only ATen could tell; `op` names who asks.
  std::int64_t rank(const ir::Attr& tensor, std::string_view op) const;
  bool is_tensor(const ir::Attr& value) const { return value.is_value() && facts_[value.value()].kind == ir::ValueKind::Tensor; }

  Replayed take() { return std::move(out_); }

 private:
  std::vector<ir::Attr> emit(const OpSignature& op, const std::vector<ir::Attr>& args);
  ir::Attr translated(const ir::Attr& attr) const;
  ir::Attr widened(const ir::Attr& attr);
  ir::ValueId add(ir::Node node, const std::vector<ir::ValueKind>& outputs, partitioner::AliasInfo alias);
  FactsOf facts() const;

  const OpSource& ops_;
  const ir::Device device_;
  Replayed out_;
  std::vector<ir::Attr> values_;   // by value of the definition: the graph's value, or a number
  std::vector<Facts> facts_;       // by value of the graph
  std::unordered_map<ir::ValueId, ir::ValueId> wide_;  // by value of the graph: itself in float32
};

/// x with its dims in memory as `order` says (0: the fastest).
ir::Attr with_stride_order(Replayer& r, const ir::Attr& x, const ir::Sizes& order);

}  // namespace fxfuser::frontend
