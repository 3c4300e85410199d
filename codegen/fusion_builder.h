#pragma once
// The work behind build_fusion; internal. A reference value gives the axes; every value is asked for at a map (one affine form
// a dim). When a reshape needs an axis split, the axes are refined and the whole thing starts again: no form is rewritten under
// a running recursion.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/fusion.h"
#include "codegen/index_map.h"
#include "partitioner/ir/graph.h"
#include "partitioner/reason.h"

namespace fxfuser::codegen {

/// One kernel can't hold the nodes.
struct Refused {
  partitioner::Reason reason;
};
[[noreturn]] void refuse_shape(std::string detail);

class FusionBuilder {
 public:
  FusionBuilder(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes, const std::vector<ir::ValueId>& outputs);
  /// Throws Refused.
  Fusion run();

 private:
  struct Asked {
    Map map;
    std::vector<Bound> guards;
    std::uint32_t expr;
  };

  ir::ValueId choose_reference() const;
  /// The only output's operand, where that is a reshape: a contiguous result is stored by its operand's dims as well as by its own.
  std::optional<ir::ValueId> reshaped_output() const;
  void build();
  void set_domain();
  void build_once();
  void place_output(ir::ValueId value);
  /// Bit a set: axis a has more (or fewer) than one element.
  std::uint64_t long_axes() const;
  void check_columns() const;
  void check_output(const FusionOutput& output, const Map& map) const;

  /// The expression that value has at a map (under the guards that hold now).
  std::uint32_t demand(ir::ValueId value, const Map& map);
  std::uint32_t make(ir::ValueId value, const Map& map);
  std::uint32_t load(ir::ValueId value, const Map& map);
  std::uint32_t pointwise(const ir::Node& node, const Map& map);
  std::uint32_t cast(const ir::Node& node, const Map& map);
  std::uint32_t reduction(const ir::Node& node, std::uint32_t output, const Map& map);
  std::uint32_t view(const ir::Node& node, const Map& map);
  std::uint32_t position(const ir::Node& node, const Map& map);
  std::uint32_t cat(const ir::Node& node, const Map& map);
  std::uint32_t pad(const ir::Node& node, const Map& map);
  std::uint32_t indexed(const ir::Node& node, const Map& map);
  std::uint32_t factory(const ir::Node& node, const Map& map);
  std::uint32_t number(const ir::Attr& value, DType dtype);
  std::uint32_t converted(std::uint32_t expr, DType dtype);
  /// Does eager compute with this operand as it is, where others are first converted to the common dtype?
  bool is_exact(const ir::OpRow& row, const std::string& param, const ir::Attr& operand) const;
  /// A value of another dtype as eager converts it to a 16-bit one.
  std::uint32_t rounded(std::uint32_t id, DType dtype);
  std::uint32_t push(Expr expr);
  std::uint32_t input_of(ir::ValueId value);

  Map view_map(const ir::Node& node, const Map& map);
  /// A reshape that no refinement makes affine but that lies in an input's memory as it is: a load by address.
  std::optional<std::uint32_t> load_reshaped(const ir::Node& node, const Map& map);
  Map take_apart(const Affine& linear, const ir::Sizes& sizes);
  /// Nothing where no refinement of the axes takes it apart.
  std::optional<Map> try_take_apart(const Affine& linear, const ir::Sizes& sizes);
  /// Map of a node's output given one operand's, when it follows; for outputs beside the reference.
  std::optional<Map> forward(const ir::Node& node, ir::ValueId operand, const Map& map);
  std::optional<Map> forward_view(const ir::Node& node, const Map& map);
  void spread_anchors();

  bool inside(ir::ValueId value) const;
  std::size_t axis_count() const { return axes_.size(); }

  const ir::Graph& graph_;
  const std::vector<ir::NodeId>& nodes_;
  const std::vector<ir::ValueId>& outputs_;
  std::unordered_set<ir::NodeId> inside_;
  ir::ValueId reference_ = ir::kNoValue;
  std::optional<ir::ValueId> stands_for_output_;  // what is stored in its place, at the same addresses
  // refined over restarts
  std::vector<Axis> axes_;
  Map reference_map_;
  // made anew at each start
  Fusion fusion_;
  std::uint64_t reduced_ = 0;
  bool reduces_ = false;
  std::unordered_map<ir::ValueId, std::vector<Asked>> asked_;
  std::unordered_map<ir::ValueId, Map> anchors_;
  std::unordered_map<ir::ValueId, std::uint32_t> input_ids_;
  std::vector<Bound> guards_;
};

}  // namespace fxfuser::codegen
