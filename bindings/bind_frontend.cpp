#include "bindings/bind_frontend.h"

#include <pybind11/stl.h>

#include <algorithm>

#include "bindings/attr_convert.h"
#include "bindings/call_values.h"
#include "bindings/define_tensor.h"
#include "bindings/frontend_handles.h"
#include "bindings/option_values.h"
#include "executor/frontend/catalog.h"
#include "executor/frontend/group_definition.h"
#include "executor/frontend/python_text.h"
#include "executor/frontend/run_fusion.h"
#include "partitioner/ir/error.h"

namespace fxfuser::bindings {
namespace {

using frontend::FusionDefinition;

/// The process's ops and fusions; never destroyed, Python may be gone by then.
const frontend::Catalog& catalog() {
  static const auto* ops = new frontend::Catalog(service().op_table());
  return *ops;
}
frontend::FusionCache& cache() {
  static auto* fusions = new frontend::FusionCache();
  return *fusions;
}

std::shared_ptr<frontend::Fusion> fusion_of(std::int64_t id) {
  FXF_CHECK(id >= 0, Runtime, "Invalid fusion id! There is no fusion {}", id);
  return cache().find(static_cast<std::uint64_t>(id));
}

/// Python's Fusion: empty until a definition has completed it.
struct FusionSlot {
  std::shared_ptr<frontend::Fusion> fusion;

  frontend::Fusion& defined() const {
    FXF_CHECK(fusion != nullptr, Runtime, "Invalid fusion id! The fusion is not defined: write a FusionDefinition for it first");
    return *fusion;
  }
  void define(std::uint64_t id) {
    FXF_CHECK(fusion == nullptr || fusion->id() == id, Runtime, "the fusion is already defined, its id is {}", fusion == nullptr ? 0 : fusion->id());
    fusion = cache().find(id);
  }
};

/// Python's FusionDefinition: a definition while it is open, then its fusion.
struct DefinitionSlot {
  std::shared_ptr<FusionSlot> target;
  std::size_t max_length = FusionDefinition::kMaxLength;
  std::shared_ptr<FusionDefinition> definition;

  void enter() {
    FXF_CHECK(target->fusion == nullptr, Runtime, "the fusion is already defined, its id is {}; define another Fusion()", target->fusion->id());
    FXF_CHECK(definition == nullptr, Runtime, "the definition is open already");
    definition = FusionDefinition::make(catalog(), max_length);
    definition->enter();
  }
  void exit(bool raised) {
    const std::shared_ptr<FusionDefinition> open = std::exchange(definition, nullptr);
    FXF_CHECK(open != nullptr, Runtime, "the definition is not open");
    if (raised) return open->abandon();
    target->fusion = open->exit(cache());
  }
  FusionDefinition& open(const char* what) const {
    FXF_CHECK(target->fusion == nullptr, Runtime, "{}: Attempting to add to a completed definition!", what);
    FXF_CHECK(definition != nullptr, Runtime, "{}: the definition is not open; use it inside `with FusionDefinition(...) as fd:`", what);
    return *definition;
  }
  std::string text() const {
    const std::string name = target->fusion != nullptr ? fmt::format("nvfuser_fusion_id{}", target->fusion->id()) : "nvfuser_incomplete_fusion";
    const std::vector<frontend::Record> none;
    return frontend::python_text(target->fusion != nullptr ? target->fusion->records() : definition != nullptr ? definition->records() : none, catalog(), name);
  }
};

executor::Options parsed_options(const char* executor, const std::map<std::string, ir::Attr>& values) {
  executor::ParsedOptions parsed = parse_options(executor, values);
  for (const std::string& warning : parsed.warnings) {
    if (PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 2) < 0) throw py::error_already_set();
  }
  return std::move(parsed.options);
}

/// The options of a call; the usual ones are parsed once.
executor::Options options_of(bool strict, const py::dict& given) {
  static const auto* plain = new executor::Options(parsed_options("nvfuser", {}));
  if (!strict && given.empty()) return *plain;
  std::map<std::string, ir::Attr> values;
  for (auto item : given) values[py::cast<std::string>(item.first)] = to_attr(item.second, {}, nullptr);
  return parsed_options(strict ? "strictly_nvfuser" : "nvfuser", values);
}

std::optional<ir::Device> device_of(const py::object& device) {
  if (device.is_none()) return std::nullopt;
  const py::object made = PyUnicode_Check(device.ptr()) ? py::module_::import("torch").attr("device")(device) : device;
  const ir::Attr attr = to_attr(made, {}, nullptr);
  const auto* found = std::get_if<ir::Device>(&attr.v);
  FXF_CHECK(found != nullptr, Type, "device must be a torch.device or its name");
  return *found;
}

py::list execute(const FusionSlot& slot, const py::iterable& inputs, const py::object& device, bool strict, bool aten, const py::dict& options) {
  const std::shared_ptr<frontend::Fusion> fusion = slot.fusion;
  slot.defined();
  std::vector<c10::IValue> values;
  for (auto item : inputs) {
    c10::IValue value;
    FXF_CHECK(to_input(item.ptr(), value), Type, "input {} is a {}; a fusion takes tensors and numbers", values.size(), std::string(py::str(py::type::of(item).attr("__name__"))));
    values.push_back(std::move(value));
  }
  const frontend::RunArguments arguments{options_of(strict, options), aten, device_of(device)};
  std::vector<std::string> warnings;
  std::vector<c10::IValue> outputs;
  const frontend::Catalog& ops = catalog();
  {
    py::gil_scoped_release released;
    outputs = frontend::run_fusion(service(), ops, *fusion, values, arguments, &warnings);
  }
  warn_of_fallback(warnings);
  py::list out;
  for (c10::IValue& output : outputs) out.append(to_python(std::move(output)));
  return out;
}

py::object default_object(const ir::Attr& attr) {
  if (const auto* value = std::get_if<bool>(&attr.v)) return py::bool_(*value);
  if (const auto* value = std::get_if<std::int64_t>(&attr.v)) return py::int_(*value);
  if (const auto* value = std::get_if<double>(&attr.v)) return py::float_(*value);
  if (const auto* value = std::get_if<std::string>(&attr.v)) return py::str(*value);
  if (const auto* value = std::get_if<ir::DType>(&attr.v)) return py::cast(*value);
  if (!attr.is_list()) return py::none();
  py::list out;
  for (const ir::Attr& item : attr.list()) out.append(default_object(item));
  return out;
}

/// (documentation, [(name, has a default, default)]) of an op of fd.ops; None when there is none.
py::object op_signature(const std::string& name) {
  const frontend::OpSignature* op = catalog().find(name);
  if (op == nullptr) return py::none();
  py::list params;
  for (const frontend::SignatureParam& param : op->params) {
    params.append(py::make_tuple(param.name, param.fallback.has_value(), param.fallback ? default_object(*param.fallback) : py::none()));
  }
  return py::make_tuple(op->doc.substr(op->doc.find("\n--\n\n") + 5), params);
}

void bind_fusion(py::module_& module) {
  py::class_<FusionSlot, std::shared_ptr<FusionSlot>>(module, "Fusion", "A defined computation: FusionDefinition(fusion) fills it in, execute runs it.")
      .def(py::init<>())
      .def(py::init([](std::int64_t id) { return std::make_shared<FusionSlot>(FusionSlot{fusion_of(id)}); }), py::arg("fusion_id"))
      .def("define", &FusionSlot::define, py::arg("fusion_id"), "Takes the fusion of this id; RuntimeError 'Invalid fusion id!' when there is none.")
      .def("defined", [](const FusionSlot& self) { return self.fusion != nullptr; })
      .def("id", [](const FusionSlot& self) { return self.defined().id(); }, "The number that equal definitions share.")
      .def("execute", [](const FusionSlot& self, const py::iterable& inputs, const py::object& device, bool strict, bool aten, const py::kwargs& options) { return execute(self, inputs, device, strict, aten, options); },
           py::arg("inputs"), py::kw_only(), py::arg("device") = py::none(), py::arg("strict") = false, py::arg("aten") = false,
           "Runs the fusion on tensors and numbers, one an input in order of definition; returns a list of tensors.\n\n"
           "device: where ops without a tensor make theirs. strict: ValueError instead of ATen steps. aten: every op by itself through ATen. Other keywords are keys of executor_parameters.")
      .def("print", [](const FusionSlot& self) { py::print(frontend::graph_text(catalog(), self.defined())); }, "Prints the graph that it runs as.")
      .def("print_ir", [](const FusionSlot& self) { py::print(frontend::graph_text(catalog(), self.defined())); }, "The same.")
      .def("__repr__", [](const FusionSlot& self) { return self.fusion == nullptr ? std::string("Fusion()") : fmt::format("Fusion({})", self.fusion->id()); });
}

void bind_definition(py::module_& module) {
  py::class_<DefinitionSlot>(module, "FusionDefinition")
      .def(py::init([](const py::object& fusion, std::size_t max_length) {
             DefinitionSlot out{std::make_shared<FusionSlot>(), max_length, nullptr};
             if (py::isinstance<FusionSlot>(fusion)) out.target = py::cast<std::shared_ptr<FusionSlot>>(fusion);
             else if (!fusion.is_none()) out.target->fusion = fusion_of(py::cast<std::int64_t>(fusion));
             return out;
           }),
           py::arg("fusion") = py::none(), py::arg("max_length") = FusionDefinition::kMaxLength)
      .def("__enter__", [](py::object self) { return py::cast<DefinitionSlot&>(self).enter(), self; })
      .def("__exit__", [](DefinitionSlot& self, const py::object& type, const py::object&, const py::object&) { self.exit(!type.is_none()); })
      .def("define_tensor", [](DefinitionSlot& self, const py::args& args, const py::kwargs& kwargs) { return wrap_handle(self.open("define_tensor").define_tensor(read_tensor_definition(args, kwargs))); })
      .def("from_pytorch", [](DefinitionSlot& self, py::handle tensor, bool static_sizes) { return wrap_handle(self.open("from_pytorch").define_tensor(describe_tensor(tensor, static_sizes))); },
           py::arg("tensor"), py::arg("static_sizes") = false, "An input like this tensor: its dtype, rank, layout and dims of size 1; with static_sizes all its sizes.")
      .def("define_scalar", [](DefinitionSlot& self, const py::object& value, const py::object& dtype) {
             // The modern form gives a constant first; 2022's takes a dtype only.
             const bool is_type = py::isinstance<ir::DType>(value) || std::holds_alternative<ir::DType>(to_attr(value, {}, nullptr).v);
             FusionDefinition& open = self.open("define_scalar");
             if (value.is_none() || is_type) return wrap_handle(open.define_scalar(to_data_type(is_type ? value : dtype).value_or(ir::DType::Float64)));
             return wrap_handle(open.define_constant(to_attr(value, {}, nullptr), to_data_type(dtype)));
           },
           py::arg("value") = py::none(), py::arg("dtype") = py::none(), "A number that comes as an input (Double unless said); with a value, a constant.")
      .def("define_constant", [](DefinitionSlot& self, const py::object& value, const py::object& dtype) { return wrap_handle(self.open("define_constant").define_constant(to_attr(value, {}, nullptr), to_data_type(dtype))); },
           py::arg("value"), py::arg("dtype") = py::none())
      .def("define_vector", [](DefinitionSlot& self, std::size_t size) {
             py::list out;
             for (std::size_t i = 0; i < size; ++i) out.append(wrap_handle(self.open("define_vector").define_scalar(ir::DType::Int64)));
             return out;
           },
           py::arg("size"), "A list of Int input scalars.")
      .def("define_null_tensor", [](DefinitionSlot& self) { return wrap_handle(self.open("define_null_tensor").define_null_tensor()); })
      .def("add_output", [](DefinitionSlot& self, py::handle output, const py::object& alias_input, const py::object& stride_order) {
             FusionDefinition& open = self.open("add_output");
             const auto handle_of = [](py::handle object) {
               if (py::isinstance<TensorHandle>(object)) return py::cast<TensorHandle&>(object).handle;
               FXF_CHECK(py::isinstance<ScalarHandle>(object), Type, "add_output takes a Tensor or Scalar of the definition, not {}", std::string(py::str(py::type::of(object).attr("__name__"))));
               return py::cast<ScalarHandle&>(object).handle;
             };
             const bool order_second = PyList_Check(alias_input.ptr()) || PyTuple_Check(alias_input.ptr());
             const py::object& order = order_second ? alias_input : stride_order;
             std::optional<frontend::Handle> alias;
             if (!alias_input.is_none() && !order_second) alias = handle_of(alias_input);
             open.add_output(handle_of(output), alias ? &*alias : nullptr, order.is_none() ? ir::Sizes() : py::cast<ir::Sizes>(order));
           },
           py::arg("output"), py::arg("alias_input") = py::none(), py::arg("stride_order") = py::none(),
           "Returns a value, or writes it into the input `alias_input` (which is then not returned); stride_order: by dim, 0 for the fastest in memory.")
      .def("_call", [](DefinitionSlot& self, const std::string& name, const py::tuple& args, const py::dict& kwargs) { return call_op(self.open("fd.ops"), name, args, kwargs); })
      .def("_fusion", [](const DefinitionSlot& self) { return self.target; })
      .def("id", [](const DefinitionSlot& self) { return self.target->defined().id(); })
      .def("print", [](const DefinitionSlot& self) { py::print(self.text()); })
      .def("print_ir", [](const DefinitionSlot& self) { py::print(frontend::graph_text(catalog(), self.target->defined())); })
      .def("__str__", &DefinitionSlot::text)
      .def("__repr__", &DefinitionSlot::text);
}

std::string group_text(const ir::Graph& graph, const partitioner::Partition& partition, const std::vector<ir::TensorMeta>& metas, int number) {
  const frontend::Group group{graph, partition.nodes, partition.inputs, partition.outputs, metas, partition.device};
  return frontend::group_text(catalog(), group, fmt::format("fusion_group{}", number));
}

struct CacheHandle {};

void bind_cache(py::module_& module) {
  py::class_<CacheHandle>(module, "FusionCache", "The fusions of the process: bounded, the one used longest ago goes first.")
      .def_static("get", [](const py::object& max_fusions) {
            if (!max_fusions.is_none()) cache().set_capacity(static_cast<std::size_t>(std::max<std::int64_t>(py::cast<std::int64_t>(max_fusions), 0)));
            return CacheHandle{};
          },
          py::arg("max_fusions") = py::none(), "The cache; max_fusions sets its size.")
      .def_static("reset", [] { cache().clear(); }, "Forgets all fusions and the counts; ids are not given again.")
      .def("num_fusions", [](const CacheHandle&) { return cache().stats().size; })
      .def("stats", [](const CacheHandle&) {
        const frontend::CacheStats stats = cache().stats();
        py::dict out;
        out["hits"] = stats.hits;
        out["misses"] = stats.misses;
        out["evictions"] = stats.evictions;
        out["num_fusions"] = stats.size;
        out["max_fusions"] = stats.capacity;
        return out;
      })
      .def("print_stats", [](const CacheHandle&) {
        const frontend::CacheStats stats = cache().stats();
        py::print(fmt::format("fusions: {} of at most {}; lookups: {} hits, {} misses; evicted: {}", stats.size, stats.capacity, stats.hits, stats.misses, stats.evictions));
      });
}

}  // namespace

void bind_frontend(py::module_& module) {
  bind_frontend_handles(module);
  bind_fusion(module);
  bind_definition(module);
  bind_cache(module);
  module.def("frontend_ops", [] { return catalog().names(); }, "The names of fd.ops that come from the table.");
  module.def("op_signature", &op_signature);
  module.def("use_group_printer", [] { service().set_group_printer(&group_text); }, "The dump word python_definition prints groups of graphs.");
  module.def("drop_fusion_programs", [] { cache().drop_programs(); });
  module.def("compute_contiguity", &compute_contiguity, py::arg("sizes"), py::arg("strides"), "By dim: is its stride the next dim's stride times that dim's size (for the last one: is it 1)?");
}

}  // namespace fxfuser::bindings
