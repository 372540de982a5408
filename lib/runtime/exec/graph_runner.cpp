#include "runtime/exec/graph_runner.h"

#include <pthread.h>

#include <algorithm>
#include <string>

namespace fleetrun::runtime {
namespace {

// The order of the heap of ready tasks: what it calls greatest comes first.
struct Later {
  const TaskGraph& graph;
  bool operator()(int a, int b) const {
    const bool urgent_a = graph.urgent[static_cast<std::size_t>(a)];
    const bool urgent_b = graph.urgent[static_cast<std::size_t>(b)];
    return urgent_a != urgent_b ? urgent_b : a > b;
  }
};

}  // namespace

GraphRunner::GraphRunner(TaskGraph graph, RunnerOptions options)
    : graph_(std::move(graph)), options_(std::move(options)), waiting_for_(graph_.size()) {
  ready_.reserve(graph_.size());
  if (options_.enter_thread) options_.enter_thread();
  for (int i = 1; i < options_.threads; ++i) crew_.emplace_back([this, i] { crew_member(i); });
}

GraphRunner::~GraphRunner() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : crew_) thread.join();
}

void GraphRunner::run() {
  if (options_.threads <= 1) return run_in_order();
  std::unique_lock lock(mutex_);
  waiting_for_ = graph_.dependencies;  // same size: no allocation
  ready_.clear();
  failure_ = nullptr;
  unfinished_ = graph_.size();
  ++run_number_;
  for (int task = 0; task < static_cast<int>(graph_.size()); ++task)
    if (waiting_for_[static_cast<std::size_t>(task)] == 0) make_ready(task);
  changed_.notify_all();
  work(lock);
  changed_.wait(lock, [this] { return running_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void GraphRunner::run_in_order() {
  for (int task = 0; task < static_cast<int>(graph_.size()); ++task) options_.run_task(task);
}

// Takes ready tasks until this run is over. Called and left with the lock held.
void GraphRunner::work(std::unique_lock<std::mutex>& lock) {
  while (unfinished_ > 0 && !failure_) {
    if (ready_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const int task = take_ready();
    ++running_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      options_.run_task(task);
    } catch (...) {  // whatever it is, it belongs to the caller of run()
      failure = std::current_exception();
    }
    lock.lock();
    --running_;
    if (failure && !failure_) failure_ = failure;
    if (!failure) finish_task(task);
    if (failure_ || unfinished_ == 0) changed_.notify_all();
  }
}

void GraphRunner::finish_task(int task) {
  --unfinished_;
  int released = 0;
  for (const int successor : graph_.successors[static_cast<std::size_t>(task)]) {
    if (--waiting_for_[static_cast<std::size_t>(successor)] > 0) continue;
    make_ready(successor);
    ++released;
  }
  if (released > 1) changed_.notify_all();  // one of them is taken by this thread
}

void GraphRunner::crew_member(int index) {
  ::pthread_setname_np(::pthread_self(), ("exec-" + std::to_string(index)).c_str());
  if (options_.enter_thread) options_.enter_thread();
  unsigned last_run = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return closing_ || run_number_ != last_run; });
    if (closing_) return;
    last_run = run_number_;
    work(lock);
  }
}

void GraphRunner::make_ready(int task) {
  ready_.push_back(task);
  std::push_heap(ready_.begin(), ready_.end(), Later{graph_});
}

int GraphRunner::take_ready() {
  std::pop_heap(ready_.begin(), ready_.end(), Later{graph_});
  const int task = ready_.back();
  ready_.pop_back();
  return task;
}

}  // namespace fleetrun::runtime
