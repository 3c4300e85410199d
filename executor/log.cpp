#include "executor/log.h"

#include "executor/background.h"

namespace fxfuser::executor {

void PendingLines::add(LogTopic topic, std::string line) {
  if (!on()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  lines_.emplace_back(topic, std::move(line));
}

void PendingLines::flush() {
  if (Background::on_worker()) return;
  std::vector<std::pair<LogTopic, std::string>> ready;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ready.swap(lines_);
  }
  for (const auto& [topic, line] : ready) sink_->write(topic, LogLevel::Info, line);
}

}  // namespace fxfuser::executor
