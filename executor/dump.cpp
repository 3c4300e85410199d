#include "executor/dump.h"

#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>

#include "codegen/command.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/file_io.h"
#include "partitioner/ir/error.h"
#include "partitioner/ir/text.h"

namespace fxfuser::executor {
namespace {

bool wants(const Options& options, const char* word) { return options.dump.count(word) > 0; }

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
  std::fflush(stdout);
}

/// The disassembler of a CUDA toolkit: as CUDA_HOME and CUDA_PATH say, on the PATH, in the usual folder.
std::vector<std::string> disassemblers() {
  std::vector<std::string> out;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* folder = std::getenv(variable); folder != nullptr && *folder != '\0') out.push_back(std::string(folder) + "/bin/nvdisasm");
  }
  out.insert(out.end(), {"nvdisasm", "/usr/local/cuda/bin/nvdisasm"});
  return out;
}

std::string machine_code(const codegen::KernelSource& source, int sm) {
  const codegen::Binary binary = codegen::Nvrtc::compile(source.name, source.text, sm, source.eager_rounding);
  codegen::ScratchFolder folder;
  const std::string image = folder.file("kernel.cubin"), log = folder.file("log");
  FXF_CHECK(codegen::write_file(image, binary.bytes), Runtime, "{} can't be written", image);
  std::string tried;
  for (const std::string& tool : disassemblers()) {
    if (codegen::run_command({tool, image}, log) == 0) return codegen::read_file(log);
    tried += (tried.empty() ? "" : ", ") + tool;
  }
  return fmt::format("// sass of {}: no disassembler answers (tried {}); install a CUDA toolkit or set CUDA_HOME", source.name, tried);
}

/// A whole translation unit in the current folder.
std::string write_unit(const codegen::KernelSource& source) {
  const std::string file = source.name + ".cu";
  const bool written = codegen::write_file(file, std::string(codegen::cuda_prelude()) + "\n" + source.text);
  return written ? "PRINTING: " + file : fmt::format("{} can't be written to the current folder", file);
}

void dump_source(const codegen::KernelSource& source, const codegen::ArchInfo& arch, const Options& options) {
  if (source.target == codegen::Target::Host) {
    if (wants(options, "host_kernel")) print(source.text);
    return;
  }
  // A printer that fails (no NVRTC, a folder that is not writable) is told in its place; the call goes on.
  const auto attempt = [&](const char* word, auto&& text) {
    if (!wants(options, word)) return;
    try {
      print(text());
    } catch (const Error& error) {
      print(fmt::format("// {} of {}: {}", word, source.name, error.what()));
    }
  };
  attempt("cuda_kernel", [&] { return source.text; });
  attempt("cuda_to_file", [&] { return write_unit(source); });
  attempt("ptx", [&] { return codegen::Nvrtc::compile(source.name, source.text, arch.sm, source.eager_rounding, true).bytes; });
  attempt("sass", [&] { return machine_code(source, arch.sm); });
}

std::string slot_list(const Step& step, void (*each)(const Step&, const std::function<void(SlotId)>&)) {
  std::vector<std::string> names;
  each(step, [&](SlotId slot) { names.push_back(fmt::format("%{}", slot)); });
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void dump_lowered(const LoweredGraph& lowered, const Options& options) {
  if (!wants(options, "partition")) return;
  std::string text = ir::print(lowered.graph);
  for (std::size_t p = 0; p < lowered.partitions.size(); ++p) {
    text += fmt::format("partition {}:", p);
    for (ir::NodeId id : lowered.partitions[p].nodes) text += " " + lowered.graph.nodes[id].name;
    text += "\n";
  }
  print(text);
}

void dump_definition(Session& session, const LoweredGraph& lowered, const partitioner::Partition& partition, const std::vector<ir::TensorMeta>& metas, const Options& options) {
  if (!wants(options, "python_definition")) return;
  if (session.group_printer) print(session.group_printer(lowered.graph, partition, metas, ++session.printed_groups));
  else print("# python_definition: this program has no printer of definitions");
}

void dump_group(const GroupPlan& group, const codegen::ArchInfo& arch, const Options& options) {
  if (wants(options, "fusion_ir")) print(ir::print(group.canonical));
  for (std::size_t i = 0; i < group.sources.size(); ++i) {
    const codegen::Segment& segment = group.segmented.segments[i];
    if (wants(options, "segmented_fusion")) print(codegen::to_string(segment.fusion));
    if (wants(options, "scheduler_params")) print(codegen::to_string(segment.schedule));
    dump_source(group.sources[i], arch, options);
  }
}

void dump_plan(const Plan& plan, const Options& options) {
  if (!wants(options, "plan")) return;
  static constexpr const char* kKinds[] = {"launch", "aten", "view", "scalar", "callable", "write"};  // as in Step::what
  std::string text = fmt::format("plan: {} steps, {} slots\n", plan.steps.size(), plan.slot_count);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    text += fmt::format("  {} {} {}({})", i, kKinds[step.what.index()], step.name, slot_list(step, for_each_read));
    if (const std::string written = slot_list(step, for_each_write); !written.empty()) text += " -> " + written;
    text += "\n";
  }
  std::vector<std::string> outputs;
  for (const ir::Attr& output : plan.outputs) outputs.push_back(output.is_value() ? fmt::format("%{}", output.value()) : ir::print(output));
  print(text + fmt::format("  return {}", fmt::join(outputs, ", ")));
}

}  // namespace fxfuser::executor
