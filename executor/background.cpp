#include "executor/background.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace fxfuser::executor {

struct Background::State {
  std::mutex mutex;    // of the queue and the thread
  std::mutex working;  // held while a job runs, so that a fork finds no lock of a job taken
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  std::thread thread;
  bool stop = false;
};

namespace {

Background* forked = nullptr;  // the one whose thread a fork must mind
thread_local bool is_worker = false;

}  // namespace

Background::State& Background::state() {
  static std::once_flag once;
  std::call_once(once, [this] {
    state_ = new State();
    forked = this;
    pthread_atfork(&Background::hold_for_fork, &Background::go_on_in_parent, &Background::start_anew_in_child);
  });
  return *state_;
}

void Background::hold_for_fork() {
  State& state = *forked->state_;
  state.working.lock();
  state.mutex.lock();
}

void Background::go_on_in_parent() {
  State& state = *forked->state_;
  state.mutex.unlock();
  state.working.unlock();
}

void Background::start_anew_in_child() {
  forked->state_ = new State();  // the thread is the parent's, and so is what waits for it
  ++forked->era_;
  ++forked->ended_;              // plans that wait for it ask again
}

void Background::enqueue(std::function<void()> job) {
  State& held = state();
  const std::lock_guard<std::mutex> lock(held.mutex);
  held.queue.push_back(std::move(job));
  if (!held.thread.joinable()) {
    held.stop = false;
    held.thread = std::thread([this, &held] { work(held); });
  }
  held.changed.notify_one();
}

bool Background::on_worker() { return is_worker; }

void Background::work(State& held) {
  is_worker = true;
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);  // of this thread and what it starts
  while (true) {
    std::function<void()> job;
    {
      std::unique_lock<std::mutex> lock(held.mutex);
      held.changed.wait(lock, [&] { return held.stop || !held.queue.empty(); });
      if (held.stop) return;
      job = std::move(held.queue.front());
      held.queue.pop_front();
    }
    {
      const std::lock_guard<std::mutex> busy(held.working);
      try {
        job();
      } catch (...) {
      }
    }
    job = nullptr;  // what it held may want a lock of the host's, which a fork holds
    ++ended_;
  }
}

void Background::finish() {
  State* held = state_;
  if (held == nullptr) return;
  std::thread thread;
  {
    const std::lock_guard<std::mutex> lock(held->mutex);
    held->queue.clear();
    held->stop = true;
    thread = std::move(held->thread);
    held->changed.notify_one();
  }
  if (thread.joinable()) thread.join();
  ++era_;
  ++ended_;
}

}  // namespace fxfuser::executor
