// The invariants of a graph: what every phase may take for granted.

#include "partitioner/ir/error.h"
#include "partitioner/ir/op_table.h"
#include "partitioner/ir/text.h"

namespace fxfuser::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), given_(graph.values.size(), false) {}

  void run() {
    for (const ValueId id : graph_.inputs) check_source(id, "input");
    for (const Constant& constant : graph_.constants) check_source(constant.value, "constant");
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      check_edges(id);
      check_outputs(id);
      check_arity(graph_.nodes[id]);
    }
    for_each_value(graph_.outputs, [&](ValueId id) { FXF_CHECK(known(id), Value, "the outputs hold unknown value {}", id); });
    for (const WriteBack& write : graph_.write_backs) {
      FXF_CHECK(known(write.target) && known(write.source), Value, "a write-back of unknown value {} to {}", write.source,
                write.target);
      FXF_CHECK(graph_.value(write.target).producer == kNoNode, Value, "a write-back to {}, which is no input or constant",
                graph_.value(write.target).name);
    }
  }

 private:
  bool known(ValueId id) const { return id < graph_.values.size(); }

  void check_source(ValueId id, std::string_view what) {
    FXF_CHECK(known(id), Value, "unknown value {} among the {}s", id, what);
    given_[id] = true;
    FXF_CHECK(graph_.value(id).producer == kNoNode, Value, "{} {} is made by a node", what, graph_.value(id).name);
  }

  void check_edges(NodeId id) const {
    const Node& node = graph_.nodes[id];
    for_each_value(node.args, [&](ValueId value) {
      FXF_CHECK(known(value), Value, "node {} ({}) reads unknown value {}", node.name, node.target, value);
      const NodeId producer = graph_.value(value).producer;
      FXF_CHECK(producer != kNoNode || given_[value], Value, "node {} ({}) reads {}, which is no input and made by no node", node.name,
                node.target, graph_.value(value).name);
      FXF_CHECK(producer == kNoNode || producer < id, Value, "node {} ({}) reads {} before it is made", node.name, node.target,
                graph_.value(value).name);
    });
    for (const NodeId before : node.after) {
      FXF_CHECK(before < id, Value, "node {} ({}) is ordered after node {}, which does not come before it", node.name,
                node.target, before);
    }
  }

  void check_outputs(NodeId id) const {
    const Node& node = graph_.nodes[id];
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      FXF_CHECK(known(node.outputs[i]), Value, "node {} ({}) makes unknown value {}", node.name, node.target, node.outputs[i]);
      const Value& value = graph_.value(node.outputs[i]);
      FXF_CHECK(value.producer == id && value.output == i, Value, "node {} ({}) does not own its output {} ({})", node.name,
                node.target, i, value.name);
    }
  }

  void check_arity(const Node& node) const {
    if (node.row == nullptr) return;
    if (node.form != nullptr) {
      FXF_CHECK(node.args.size() <= node.form->names.size(), Value, "node {} ({}) has {} arguments, its row knows {}", node.name,
                node.target, node.args.size(), node.form->names.size());
      return;
    }
    const auto& params = node.row->params;
    FXF_CHECK(node.args.size() <= params.size(), Value, "node {} ({}) has {} arguments, its row has {} parameters", node.name,
              node.target, node.args.size(), params.size());
    for (std::size_t i = node.args.size(); i < params.size(); ++i) {
      FXF_CHECK(node.row->defaults.contains(params[i]), Value, "node {} ({}) lacks argument '{}'", node.name, node.target,
                params[i]);
    }
    if (node.row->kind == OpKind::Composite) return;  // split and its kin make as many as their arguments say
    FXF_CHECK(node.outputs.size() == node.row->outputs.size(), Value, "node {} ({}) has {} outputs, its row has {}", node.name,
              node.target, node.outputs.size(), node.row->outputs.size());
  }

  const Graph& graph_;
  std::vector<bool> given_;  // by value: an input or a constant
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace fxfuser::ir
