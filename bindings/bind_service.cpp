#include "bindings/bind_service.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <tuple>

#include "bindings/call_values.h"
#include "bindings/min_cut.h"
#include "bindings/option_values.h"
#include "executor/interface/fxfuser.h"

namespace fxfuser::bindings {
namespace {

py::dict stats_dict() {
  const Stats stats = service().stats();
  py::dict launches;
  launches["cuda"] = stats.launches_cuda;
  launches["host"] = stats.launches_host;
  py::dict out;
  out["calls"] = stats.calls;
  out["launches"] = launches;
  out["aten_steps"] = stats.aten_steps;
  out["view_steps"] = stats.view_steps;
  out["compiles"] = stats.compiles;
  out["plan_hits"] = stats.plan_hits;
  out["plan_misses"] = stats.plan_misses;
  out["kernel_memory_hits"] = stats.memory_hits;
  out["kernel_disk_hits"] = stats.disk_hits;
  out["fallbacks"] = stats.fallbacks;
  out["graph_replays"] = stats.graph_replays;
  py::dict memory;
  memory["kept_bytes"] = stats.host_kept_bytes;
  memory["fresh"] = stats.host_fresh_blocks;
  memory["reused"] = stats.host_reused_blocks;
  out["host_memory"] = memory;
  out["missing_kernels"] = stats.missing_kernels;
  out["kernels"] = stats.kernels;
  out["miss_reasons"] = stats.miss_reasons;
  return out;
}

py::list options_list() {
  py::list out;
  for (const executor::OptionDoc& doc : service().option_docs()) {
    py::dict row;
    row["name"] = doc.name;
    row["type"] = doc.type;
    row["default"] = doc.fallback;
    row["meaning"] = doc.meaning;
    out.append(row);
  }
  return out;
}

partitioner::Check python_check(py::function function) {
  // The function outlives every graph that may ask it; it is never destroyed.
  auto* held = new py::function(std::move(function));
  return [held](const ir::Graph& graph, const ir::Node& node) -> partitioner::Support {
    py::gil_scoped_acquire gil;
    py::list inputs;
    ir::for_each_value(node.args, [&](ir::ValueId id) {
      const auto& meta = graph.value(id).meta;
      inputs.append(meta ? py::object(py::str(ir::to_string(*meta))) : py::none());
    });
    const py::object answer = (*held)(node.name, node.target, inputs);
    if (answer.is_none() || answer.equal(py::bool_(true))) return partitioner::Support::yes();
    return partitioner::Support::no(partitioner::ReasonCode::Argument, py::cast<std::string>(py::str(answer)));
  };
}

std::vector<bool> min_cut_of(std::uint32_t nodes, const std::vector<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>>& edges, std::uint32_t source, std::uint32_t sink) {
  std::vector<FlowEdge> network;
  network.reserve(edges.size());
  for (const auto& [from, to, capacity] : edges) network.push_back({from, to, std::min(capacity, kUnbounded)});
  return min_cut(nodes, network, source, sink);
}

}  // namespace

void bind_service(py::module_& module) {
  module.def("stats", &stats_dict, "Counters since start or the last reset_stats().");
  module.def("reset_stats", [] { service().reset_stats(); });
  module.def("record_kernels", [](bool on) { service().record_kernels(on); });
  module.def("clear_caches", [](bool disk) { service().clear_caches(disk); }, py::arg("disk") = false);
  module.def("finish_background", [] { service().finish_background(); }, py::call_guard<py::gil_scoped_release>(), "Ends background compiles.");
  module.def("option_docs", &options_list);
  module.def(
      "check_options",
      [](const std::string& executor, const py::object& parameters) {
        warn(parse_options(executor, option_values(parameters)).warnings, PyExc_UserWarning);
      },
      py::arg("executor"), py::arg("parameters"), "Raises what execute would raise for these options.");
  module.def("min_cut", &min_cut_of, py::arg("nodes"), py::arg("edges"), py::arg("source"), py::arg("sink"),
             "By node of a network of (from, to, capacity): does it lie on the sink's side of the cheapest cut?");
  module.def("ops_json", [] { return service().ops_json(); });
  module.def("register_rows", [](const std::string& json, std::string cuda, std::string host) { service().register_rows(json, {std::move(cuda), std::move(host)}); },
             py::arg("json"), py::arg("cuda_source") = "", py::arg("host_source") = "");
  module.def("register_check", [](const std::string& name, py::function check) { service().register_check(name, python_check(std::move(check))); });
  module.def("doctor", [] {
    py::gil_scoped_release released;
    return service().doctor();
  });
  module.def("cache_folder", [] { return service().cache_folder(); });
  module.def("cache_problem", [] { return service().cache_problem(); });
  module.def("load_pack", [](const std::string& folder) { return service().load_pack(folder); }, py::arg("folder"));
  module.def("set_nvrtc_path", [](std::vector<std::string> folders) { service().set_nvrtc_path(std::move(folders)); });
  module.def("compile_cuda", [](const std::string& name, const std::string& text, int sm) { return service().compile_cuda(name, text, sm); },
             py::call_guard<py::gil_scoped_release>(), py::arg("name"), py::arg("text"), py::arg("sm"));
  module.def("emulate_cuda", [](std::string machine, std::vector<std::string> flags, const std::string& arch) { service().emulate_cuda(std::move(machine), std::move(flags), arch); },
             py::arg("machine"), py::arg("flags"), py::arg("arch") = "toy");
  module.def("set_library_path", [](std::string path) { set_library_path(std::move(path)); });
  module.def("load", [] { service(); }, "Loads the code-generation library; raises RuntimeError listing what was tried.");
}

}  // namespace fxfuser::bindings
