// What a program tells the host program's log of calls that no plan took.

#include <fmt/ranges.h>

#include "executor/program.h"

namespace fxfuser::executor {
namespace {

constexpr int kAdviseAfter = 8;  // misses of a kind

}  // namespace

std::vector<std::string> ProgramImpl::input_names() const {
  std::vector<std::string> names;
  for (ir::ValueId value : graph_.inputs) names.push_back(graph_.value(value).name);
  for (const ir::Constant& constant : graph_.constants) names.push_back(constant.path);
  return names;
}

void ProgramImpl::tell_miss(const std::string& miss, const std::optional<PlanKey>& before, const Call& call) {
  LogSink& log = *session_.log;
  session_.kernels.lines().flush();  // what a background compile had to say
  const PlanKey now{{call.signature.begin(), call.signature.end()}, call.options};
  std::vector<KeyDifference> differences;
  if (before) differences = key_differences(*before, now, input_names());
  std::string text;
  for (const KeyDifference& difference : differences) text += (text.empty() ? "" : "; ") + difference.text;
  if (text.empty()) text = call.options.use_python_fusion_cache ? miss : "use_python_fusion_cache is False";
  if (log.wants(LogTopic::Guard, LogLevel::Info)) log.write(LogTopic::Guard, LogLevel::Info, fmt::format("{}: planned anew: {}", graph_.name, text));
  std::vector<std::string> ripe;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const KeyDifference& difference : differences) {
      if (++misses_[difference.field] == kAdviseAfter) ripe.push_back(difference.field);
    }
  }
  for (const std::string& field : ripe) {
    log.write(LogTopic::Guard, LogLevel::Warning, fmt::format("{}: planned anew {} times because of the {}, last: {}. {}", graph_.name, kAdviseAfter, field, text, advice_on(field)));
  }
}

}  // namespace fxfuser::executor
