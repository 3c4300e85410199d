// Kernels for later, or for a machine that is not at hand: planned on the forecast, compiled into a folder, never loaded.

#include <charconv>

#include "executor/program.h"
#include "partitioner/ir/error.h"

namespace fxfuser::executor {
namespace {

/// The parts that plans may be made for on the machine that a word means.
std::vector<codegen::ArchInfo> parts_of(Session& session, std::string_view word) {
  if (word == "host") return {session.arch(ir::Device{})};
  int sm = 0;
  const char* const last = word.data() + word.size();
  const bool named = word.starts_with("sm_") && std::from_chars(word.data() + 3, last, sm).ptr == last;
  FXF_CHECK(named && sm >= 75 && sm < 200, Value, "arch is '{}'; it can be 'host', or 'sm_90' and the like from sm_75 on", word);
  std::vector<codegen::ArchInfo> parts = {codegen::ArchInfo::generic(sm)};
  if (sm == codegen::ArchInfo::h200().sm) parts.push_back(codegen::ArchInfo::h200());
  return parts;
}

}  // namespace

std::size_t ProgramImpl::warm(const Options& options, const std::vector<ir::TensorMeta>& metas, std::string_view arch, const std::string& pack) {
  const std::vector<codegen::ArchInfo> parts = parts_of(session_, arch);
  const DiskCache folder(pack);
  FXF_CHECK(folder.on(), Runtime, "{}", folder.problem());
  Options quiet = options;
  quiet.dump.clear();
  const LoweredGraph lowered = lower(session_, described(metas, arch == "host" ? "host" : "cuda").first, quiet);
  std::vector<GroupPlan> groups;
  groups.reserve(lowered.partitions.size() * parts.size());
  std::vector<const codegen::KernelSource*> sources;
  for (const codegen::ArchInfo& part : parts) {
    for (std::size_t p = 0; p < lowered.partitions.size(); ++p) {
      std::vector<ir::TensorMeta> inputs;
      for (ir::ValueId value : lowered.partitions[p].inputs) inputs.push_back(lowered.graph.value(value).meta.value_or(ir::TensorMeta{}));
      groups.push_back(plan_group(session_, lowered, p, inputs, {}, quiet, {}, &part));
      for (const codegen::KernelSource& source : groups.back().sources) sources.push_back(&source);
    }
  }
  return session_.kernels.fill(sources, parts[0].sm, folder);
}

}  // namespace fxfuser::executor
