#include "bindings/graph_builder.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/python_variable.h>

#include "bindings/host_callable.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

/// What an overload's schema means for an imported node; looked up once an overload.
struct Overload {
  std::string target;  // "aten.add.Tensor"
  const c10::FunctionSchema* schema = nullptr;
  std::vector<ir::Attr> defaults;
  std::vector<std::uint32_t> writes;
  std::vector<std::int32_t> views;  // per return
  bool one_list = false;            // returns a single Tensor[]
  bool scalar = false;              // returns one number
  bool flat = true;                 // every return is one tensor or number
};

std::int32_t viewed_argument(const c10::FunctionSchema& schema, const c10::Argument& result) {
  if (result.alias_info() == nullptr) return -1;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* info = schema.arguments()[i].alias_info();
    if (info == nullptr) continue;
    for (const auto& symbol : result.alias_info()->beforeSets()) {
      if (info->beforeSets().count(symbol) > 0) return static_cast<std::int32_t>(i);
    }
  }
  return -1;
}

Overload read_overload(py::handle overload) {
  Overload out;
  out.target = py::cast<std::string>(py::str(overload));
  const auto name = py::cast<std::string>(overload.attr("_schema").attr("name"));
  const auto variant = py::cast<std::string>(overload.attr("_schema").attr("overload_name"));
  auto handle = c10::Dispatcher::singleton().findSchema({name, variant});
  FXF_CHECK(handle.has_value(), Value, "{} has no schema in the dispatcher", out.target);
  out.schema = &handle->schema();
  for (std::size_t i = 0; i < out.schema->arguments().size(); ++i) {
    const c10::Argument& argument = out.schema->arguments()[i];
    out.defaults.push_back(default_of(argument));
    if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) out.writes.push_back(static_cast<std::uint32_t>(i));
  }
  for (const c10::Argument& result : out.schema->returns()) {
    out.views.push_back(viewed_argument(*out.schema, result));
    const c10::TypeKind kind = result.type()->kind();
    if (kind == c10::TypeKind::ListType) {
      out.one_list = out.schema->returns().size() == 1;
      out.flat = out.flat && out.one_list;
    } else if (kind == c10::TypeKind::IntType || kind == c10::TypeKind::FloatType || kind == c10::TypeKind::BoolType ||
               kind == c10::TypeKind::SymIntType || kind == c10::TypeKind::SymFloatType || kind == c10::TypeKind::SymBoolType ||
               kind == c10::TypeKind::NumberType) {
      out.scalar = true;
      out.flat = out.flat && out.schema->returns().size() == 1;
    } else if (kind != c10::TypeKind::TensorType) {
      out.flat = false;
    }
  }
  return out;
}

const Overload& overload_facts(py::handle overload) {
  // Overloads live as long as the process; the GIL guards the map.
  static auto* cache = new std::unordered_map<PyObject*, Overload>();
  auto found = cache->find(overload.ptr());
  if (found != cache->end()) return found->second;
  Overload facts = read_overload(overload);
  overload.inc_ref();
  return cache->emplace(overload.ptr(), std::move(facts)).first->second;
}

std::vector<ir::Attr> schema_order(const Overload& facts, const NodeMap& nodes, const py::tuple& args, const py::dict& kwargs) {
  std::vector<ir::Attr> out = facts.defaults;
  const auto& arguments = facts.schema->arguments();
  FXF_CHECK(args.size() <= arguments.size(), Type, "{} takes {} arguments, {} were given", facts.target, arguments.size(), args.size());
  for (std::size_t i = 0; i < args.size(); ++i) out[i] = to_attr(args[i], nodes, arguments[i].type());
  for (auto item : kwargs) {
    const auto key = py::cast<std::string>(item.first);
    const auto position = facts.schema->argumentIndexWithName(key);
    FXF_CHECK(position.has_value(), Type, "{} has no argument '{}'", facts.target, key);
    const auto at = static_cast<std::size_t>(*position);
    out[at] = to_attr(item.second, nodes, arguments[at].type());
  }
  return out;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name) { imported_.graph.name = std::move(name); }

void GraphBuilder::add_placeholder(py::handle node, const std::string& name, py::handle value) {
  const bool tensor = THPVariable_Check(value.ptr());
  // Without a value the kind is not known; a number at the call is told apart from a tensor there.
  const ir::ValueKind kind = tensor ? ir::ValueKind::Tensor : value.is_none() ? ir::ValueKind::Other : ir::ValueKind::Scalar;
  nodes_[node.ptr()] = {{imported_.graph.add_input(name, tensor ? meta_of(value) : std::nullopt, kind)}, false};
  ++origin_;
}

bool GraphBuilder::add_constant(py::handle node, const std::string& path, py::handle value) {
  const auto [at, fresh] = constants_.emplace(path, ir::kNoValue);
  if (fresh) at->second = imported_.graph.add_constant(path, meta_of(value));
  nodes_[node.ptr()] = {{at->second}, false};
  ++origin_;
  return fresh;
}

void GraphBuilder::finish_node(py::handle node, ir::Node&& made, std::size_t outputs, bool several, ir::ValueKind kind, py::handle value) {
  made.origin = origin_++;
  ir::Graph& graph = imported_.graph;
  const ir::NodeId id = graph.add_node(std::move(made), outputs, kind);
  const std::vector<ir::ValueId>& ids = graph.nodes[id].outputs;
  if (kind == ir::ValueKind::Tensor && !value.is_none()) {
    if (!several && ids.size() == 1) {
      graph.values[ids[0]].meta = meta_of(value);
    } else if (py::isinstance<py::sequence>(value)) {
      const auto sequence = py::reinterpret_borrow<py::sequence>(value);
      for (std::size_t i = 0; i < ids.size() && i < sequence.size(); ++i) graph.values[ids[i]].meta = meta_of(sequence[i]);
    }
  }
  nodes_[node.ptr()] = {ids, several};
}

bool GraphBuilder::add_op(py::handle node, const std::string& name, py::handle overload, const py::tuple& args, const py::dict& kwargs,
                          py::handle value, const std::string& where) {
  const Overload& facts = overload_facts(overload);
  if (!facts.flat) return false;
  std::size_t outputs = facts.schema->returns().size();
  if (facts.one_list) {
    if (!py::isinstance<py::sequence>(value)) return false;
    outputs = py::len(value);
  }
  ir::Node made;
  made.name = name;
  made.target = facts.target;
  made.where = where;
  made.args = schema_order(facts, nodes_, args, kwargs);
  partitioner::AliasInfo alias;
  alias.writes = facts.writes;
  alias.views = facts.one_list ? std::vector<std::int32_t>(outputs, facts.views.at(0)) : facts.views;
  imported_.alias.push_back(std::move(alias));
  const bool several = facts.one_list || outputs > 1;
  finish_node(node, std::move(made), outputs, several, facts.scalar ? ir::ValueKind::Scalar : ir::ValueKind::Tensor, value);
  return true;
}

void GraphBuilder::add_scalar(py::handle node, const std::string& name, const std::string& target, const py::tuple& args,
                              const std::string& where) {
  ir::Node made;
  made.kind = ir::NodeKind::Scalar;
  made.name = name;
  made.target = target;
  made.where = where;
  for (auto item : args) made.args.push_back(to_attr(item, nodes_, nullptr));
  imported_.alias.emplace_back();
  finish_node(node, std::move(made), 1, false, ir::ValueKind::Scalar, py::none());
}

void GraphBuilder::add_callable(py::handle node, const std::string& name, const std::string& target, py::object step,
                                const py::list& inputs, std::size_t outputs, bool several, const py::list& metas,
                                const std::string& where) {
  ir::Node made;
  made.kind = ir::NodeKind::Callable;
  made.name = name;
  made.target = target;
  made.where = where;
  std::vector<ir::Attr> values;
  std::vector<std::size_t> widths;  // 0: a single value, else how many a tuple has
  for (auto item : inputs) {
    const NodeValues& found = nodes_.at(item.ptr());
    widths.push_back(found.several ? found.ids.size() : 0);
    for (ir::ValueId id : found.ids) values.emplace_back(ir::ValueRef{id});
  }
  std::shared_ptr<HostCallable> callable = make_host_callable(std::move(step), std::move(widths));
  made.args.emplace_back(ir::Opaque{callable, target});
  for (ir::Attr& value : values) made.args.push_back(std::move(value));
  imported_.alias.emplace_back();
  finish_node(node, std::move(made), outputs, several, ir::ValueKind::Tensor, several ? py::object(metas) : outputs == 1 ? py::object(metas[0]) : py::none());
  for (std::size_t i = 0; i < outputs; ++i) {
    const py::object meta = metas[i];
    if (!THPVariable_Check(meta.ptr())) imported_.graph.values[nodes_.at(node.ptr()).ids[i]].kind = ir::ValueKind::Other;
  }
}

bool GraphBuilder::add_getitem(py::handle node, py::handle source, std::int64_t index) {
  const NodeValues& found = nodes_.at(source.ptr());
  const auto size = static_cast<std::int64_t>(found.ids.size());
  if (!found.several || index >= size || index < -size) return false;
  nodes_[node.ptr()] = {{found.ids[static_cast<std::size_t>(index < 0 ? index + size : index)]}, false};
  ++origin_;
  return true;
}

void GraphBuilder::add_tuple(py::handle node, const py::list& members) {
  NodeValues made{{}, true};
  for (auto member : members) made.ids.push_back(nodes_.at(member.ptr()).ids.at(0));
  nodes_[node.ptr()] = std::move(made);
  ++origin_;
}

void GraphBuilder::set_outputs(const py::list& outputs) {
  for (auto item : outputs) imported_.graph.outputs.push_back(to_attr(item, nodes_, nullptr));
}

std::size_t GraphBuilder::output_count(py::handle node) const { return nodes_.at(node.ptr()).ids.size(); }

ImportedGraph GraphBuilder::take() { return std::move(imported_); }

void bind_graph_builder(py::module_& module) {
  py::class_<GraphBuilder>(module, "GraphBuilder", "Builds the graph of one module, one call a node.")
      .def(py::init<std::string>())
      .def("add_placeholder", &GraphBuilder::add_placeholder)
      .def("add_constant", &GraphBuilder::add_constant)
      .def("add_op", &GraphBuilder::add_op)
      .def("add_scalar", &GraphBuilder::add_scalar)
      .def("add_callable", &GraphBuilder::add_callable)
      .def("add_getitem", &GraphBuilder::add_getitem)
      .def("add_tuple", &GraphBuilder::add_tuple)
      .def("set_outputs", &GraphBuilder::set_outputs)
      .def("output_count", &GraphBuilder::output_count);
}

}  // namespace fxfuser::bindings
