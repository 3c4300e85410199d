#pragma once
// Lines for the host program's log. Nothing here is asked on a call that a plan takes.

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/interface/fxfuser.h"

namespace fxfuser::executor {

/// Lines of several threads, kept until no lock is held: a sink may take a lock of the host program's.
class PendingLines {
 public:
  void set_sink(std::shared_ptr<LogSink> sink) { sink_ = std::move(sink); }
  bool on() const { return sink_ != nullptr; }
  void add(LogTopic topic, std::string line);
  /// Hands over what has gathered.
  void flush();

 private:
  std::shared_ptr<LogSink> sink_;  // set once, at load
  std::mutex mutex_;
  std::vector<std::pair<LogTopic, std::string>> lines_;
};

/// Flushes at the end of a scope, also when it raises. What a background thread adds waits for the next thread that flushes.
class FlushLines {
 public:
  explicit FlushLines(PendingLines& lines) : lines_(lines) {}
  ~FlushLines() { lines_.flush(); }
  FlushLines(const FlushLines&) = delete;
  FlushLines& operator=(const FlushLines&) = delete;

 private:
  PendingLines& lines_;
};

}  // namespace fxfuser::executor
