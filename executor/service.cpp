// The library's one exported entry and the Service behind it.

#include <ATen/Version.h>
#include <torch/version.h>

#include <nlohmann/json.hpp>

#include "codegen/cuda/nvrtc.h"
#include "codegen/host/host_compiler.h"
#include "executor/driver_api.h"
#include "executor/interface/entry.h"
#include "executor/program.h"
#include "executor/row_overload.h"
#include "executor/table_ops.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/text.h"

namespace fxfuser::executor {
namespace {

using Json = nlohmann::ordered_json;

const char* kind_word(ir::OpKind kind) {
  switch (kind) {
    case ir::OpKind::Pointwise: return "pointwise";
    case ir::OpKind::Cast: return "cast";
    case ir::OpKind::Reduction: return "reduction";
    case ir::OpKind::View: return "view";
    case ir::OpKind::Position: return "position";
    case ir::OpKind::Indexed: return "indexed";
    case ir::OpKind::Factory: return "factory";
    case ir::OpKind::Composite: return "composite";
  }
  return "";
}

/// x * 2 + 1 over a few elements, as a kernel of a target.
codegen::KernelSource trial_kernel(Session& session, const ir::Device& device) {
  ir::Graph graph;
  const ir::TensorMeta meta = ir::contiguous(ir::DType::Float32, device, {64});
  const ir::ValueId x = graph.add_input("x", meta);
  ir::Node node;
  node.row = session.ops.find("mul");
  node.target = "fxf.mul";
  node.name = "mul";
  node.args = {ir::ValueRef{x}, 2.0};
  const ir::NodeId id = graph.add_node(std::move(node), 1);
  const ir::ValueId out = graph.nodes[id].outputs[0];
  graph.values[out].meta = meta;
  graph.outputs.emplace_back(ir::ValueRef{out});
  const codegen::ArchInfo arch = session.arch(device);
  const codegen::Segmented segmented = codegen::segment(graph, arch, {});
  return codegen::emit(segmented.segments.at(0).fusion, segmented.segments.at(0).schedule, arch);
}

class ServiceImpl final : public Service {
 public:
  ServiceImpl() : session_(environment().cache_dir) { define_table_ops(make_table_ops(session_.ops)); }

  std::shared_ptr<Program> import(ImportedGraph graph) override {
    ir::verify(graph.graph);
    FXF_CHECK(graph.alias.size() == graph.graph.nodes.size(), Value, "{} nodes came with {} alias facts", graph.graph.nodes.size(), graph.alias.size());
    return std::make_shared<ProgramImpl>(session_, std::move(graph));
  }
  ParsedOptions parse_options(std::string_view executor, const std::map<std::string, ir::Attr>& parameters) override {
    ParsedOptions parsed = executor::parse_options(executor, parameters);
    for (const std::string& note : parsed.options.mode == Mode::Aten ? std::vector<std::string>{} : environment().notes) {
      if (session_.tell_once(note)) parsed.warnings.push_back(note);
    }
    for (const std::string& word : parsed.options.skip_ops) {
      if (session_.ops.is_named(word) || is_operator(word)) continue;
      parsed.warnings.push_back(fmt::format("executor_parameters['skip_ops'] has '{}', which is no row and no target; python -m fxfuser ops lists rows and targets, such as relu and aten.relu.default", word));
    }
    return parsed;
  }
  std::vector<OptionDoc> option_docs() override { return executor::option_docs(); }
  Stats stats() override { return session_.stats(); }
  void reset_stats() override { session_.reset_stats(); }
  void record_kernels(bool on) override { session_.recording = on; }
  void clear_caches(bool disk) override { session_.clear(disk); }
  void finish_background() override { session_.background.finish(); }

  std::string ops_json() override {
    Json rows = Json::array();
    for (const auto& row : session_.ops.rows()) {
      Json targets = Json::array();
      for (const ir::OpTarget& target : row->targets) targets.push_back(target.target);
      rows.push_back({{"op", row->op}, {"kind", kind_word(row->kind)}, {"targets", targets}});
    }
    return rows.dump();
  }

  const ir::OpTable& op_table() override { return session_.ops; }

  void register_rows(std::string_view json, const ir::RowFunctions& functions) override {
    // What can be refused is refused before anything changes.
    const ir::OpTable rows = ir::OpTable::from_json(json, "registered row", functions);
    session_.capability.validate(rows, &session_.ops);
    check_fallbacks(rows);
    std::vector<TableOp> fresh = make_table_ops(rows);
    session_.ops.add_json(json, "registered row", functions);
    define_table_ops(std::move(fresh));
  }
  void register_check(std::string name, partitioner::Check check) override { session_.capability.register_check(std::move(name), std::move(check)); }

  std::string doctor() override {
    Json rows = Json::array();
    const auto add = [&](const std::string& name, const std::string& state, const std::string& detail) { rows.push_back({{"name", name}, {"state", state}, {"detail", detail}}); };
    std::string why;
    const auto command = codegen::HostCompiler::command(&why);
    if (command.empty()) add("host compiler", "off", why + "; install g++ or set CXX");
    else add("host compiler", "ok", codegen::HostCompiler::version());
    if (const std::string note = codegen::HostCompiler::note(); !note.empty()) add("CXX", "off", note);
    if (codegen::Nvrtc::available(&why)) add("NVRTC", "ok", codegen::Nvrtc::version());
    else add("NVRTC", "off", why + "; install torch's CUDA packages, or name their folder in FXFUSER_NVRTC");
    if (Driver::available(&why)) add("CUDA driver", "ok", Driver::facts(0).name);
    else add("CUDA driver", "off", why);
    try_target("host kernel", codegen::Target::Host, ir::Device{}, add);
    try_target("CUDA kernel", codegen::Target::Cuda, ir::Device{ir::DeviceKind::Cuda, 0}, add);
    const DiskCache& disk = session_.kernels.disk();
    if (disk.on()) add("cache", "ok", disk.folder());
    else add("cache", "off", cache_problem());
    return rows.dump();
  }

  std::string cache_folder() override { return session_.kernels.disk().folder(); }
  std::string cache_problem() override {
    const DiskCache& disk = session_.kernels.disk();
    return disk.on() || !disk.problem().empty() ? disk.problem() : "the kernel cache on disk is switched off (FXFUSER_DISABLE=disk_cache)";
  }
  void set_nvrtc_path(std::vector<std::string> folders) override { codegen::Nvrtc::set_search_path(std::move(folders)); }
  void set_graph_capture(std::shared_ptr<GraphCapture> capture) override { session_.graph_capture = std::move(capture); }
  void set_log(std::shared_ptr<LogSink> sink) override {
    session_.log = sink;
    session_.kernels.lines().set_sink(std::move(sink));
  }
  std::size_t load_pack(const std::string& folder) override { return session_.kernels.add_pack(folder, Driver::available() ? session_.arch({ir::DeviceKind::Cuda, 0}).sm : 0); }
  void set_group_printer(GroupPrinter printer) override { session_.group_printer = std::move(printer); }
  std::size_t compile_cuda(const std::string& name, std::string_view text, int sm) override { return codegen::Nvrtc::compile(name, text, sm, false).bytes.size(); }
  void emulate_cuda(std::string machine, std::vector<std::string> flags, std::string_view arch) override {
    FXF_CHECK(arch == "toy" || arch == "h200", Value, "arch is '{}'; it can be 'toy' or 'h200'", arch);
    session_.emulate({std::move(machine), arch == "toy" ? codegen::ArchInfo::toy() : codegen::ArchInfo::h200(), std::move(flags)});
  }

 private:
  template <typename Add>
  void try_target(const char* name, codegen::Target target, ir::Device device, Add&& add) {
    const std::string problem = session_.target_problem(target);
    if (!problem.empty()) return add(name, "off", problem);
    try {
      const codegen::KernelSource source = trial_kernel(session_, device);
      const auto kernels = session_.kernels.get({&source}, session_.arch(device).sm);
      for (const codegen::LaunchConfig& launch : source.launches) kernels[0]->entry(launch, std::max<int>(device.index, 0));
      add(name, "ok", source.name + " compiled and loaded");
    } catch (const std::exception& error) {
      add(name, "broken", error.what());
    }
  }

  Session session_;
};

Service* default_service() {
  static auto* service = new ServiceImpl();  // lives as long as the process: threads may still be in it at exit
  return service;
}

}  // namespace
}  // namespace fxfuser::executor

extern "C" FXFUSER_API const fxfuser_entry* fxfuser_codegen_entry() {
  static const fxfuser_entry entry{FXFUSER_INTERFACE_VERSION, TORCH_VERSION, FXFUSER_ABI, fxfuser::executor::default_service};
  return &entry;
}
