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

std::vector<KeyDifference> ProgramImpl::differences(const Miss& miss) const {
  return miss.before ? key_differences(*miss.before, miss.now, input_names()) : std::vector<KeyDifference>{};
}

std::string ProgramImpl::text_of(const Miss& miss, const std::vector<KeyDifference>& differences) {
  std::string text;
  for (const KeyDifference& difference : differences) text += (text.empty() ? "" : "; ") + difference.text;
  if (!text.empty()) return text;
  return miss.now.options.use_python_fusion_cache ? miss.reason : "use_python_fusion_cache is False";
}

void ProgramImpl::note_miss(Miss miss) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_miss_ = miss;
  }
  if (session_.log == nullptr) return;
  LogSink& log = *session_.log;
  session_.kernels.lines().flush();  // what a background compile had to say
  const std::vector<KeyDifference> differing = differences(miss);
  const std::string text = text_of(miss, differing);
  if (log.wants(LogTopic::Guard, LogLevel::Info)) log.write(LogTopic::Guard, LogLevel::Info, fmt::format("{}: planned anew: {}", graph_.name, text));
  std::vector<std::string> ripe;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const KeyDifference& difference : differing) {
      if (++misses_[difference.field] == kAdviseAfter) ripe.push_back(difference.field);
    }
  }
  for (const std::string& field : ripe) {
    log.write(LogTopic::Guard, LogLevel::Warning, fmt::format("{}: planned anew {} times because of the {}, last: {}. {}", graph_.name, kAdviseAfter, field, text, advice_on(field)));
  }
}

}  // namespace fxfuser::executor
