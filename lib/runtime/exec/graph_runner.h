// Runs a task graph again and again on a fixed crew of threads. After construction a run allocates nothing.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/exec/task_graph.h"

namespace fleetrun::runtime {

struct RunnerOptions {
  int threads = 1;                         // tasks in flight; the caller of run() is one of them
  std::function<void(int task)> run_task;  // called from the crew's threads
  std::function<void()> enter_thread;      // once on each thread before its first task; may be empty
};

class GraphRunner {
 public:
  GraphRunner(TaskGraph graph, RunnerOptions options);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // Every task once, urgent ones first, then lower numbers first; with one thread in the order of their
  // numbers. The first exception ends the run: no further task starts, running ones end, it is rethrown,
  // and the runner can be used again.
  void run();

 private:
  void run_in_order();
  void work(std::unique_lock<std::mutex>& lock);
  void finish_task(int task);
  void crew_member(int index);
  void make_ready(int task);
  int take_ready();

  const TaskGraph graph_;
  const RunnerOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;  // something became ready, a run began or ended, or the end has come
  std::vector<int> waiting_for_;     // by task: dependencies not yet met in this run
  std::vector<int> ready_;           // a heap, the next task in front
  std::size_t unfinished_ = 0;
  int running_ = 0;
  unsigned run_number_ = 0;
  bool closing_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> crew_;
};

}  // namespace fleetrun::runtime
