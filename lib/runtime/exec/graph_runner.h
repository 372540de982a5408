// Runs a task graph again and again on a fixed crew of threads. After construction a run allocates nothing.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/exec/task_graph.h"

namespace fleetrun::runtime {

struct RunnerOptions {
  int threads = 1;      // tasks at work at once; the caller of run() is one of the threads that do them
  int substitutes = 0;  // threads more, which step in for those whose task sleeps (let_others_work)
  int lanes = 0;  // 0: tasks of a lane run on the crew like any other; else each lane has a thread of its own
  std::function<void(int task)> run_task;  // called from the crew's threads and those of the lanes
  std::function<void()> enter_thread;      // once on each thread before its first task; may be empty
};

// More than ten members: one mutex guards the state of a run, which every thread reads and changes with each task.
class GraphRunner {
 public:
  GraphRunner(TaskGraph graph, RunnerOptions options);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // Every task once, urgent ones first, then lower numbers first; with one thread in all in the order of their
  // numbers. The first exception ends the run: no further task starts, running ones end, it is rethrown,
  // and the runner can be used again.
  void run();

  // Called by a task that is about to sleep: until it ends another thread may be at work in its place.
  void let_others_work();

 private:
  // A thread that takes any task that is ready. The first is whoever calls run().
  struct Member {
    std::thread thread;  // none of the caller's
    std::thread::id id;
    bool at_work = false;  // counts against options_.threads
  };
  struct Lane {
    std::thread thread;
    std::condition_variable changed;  // a task became ready, or the end has come
    std::vector<int> ready;           // in the order in which they became so
  };
  using Lock = std::unique_lock<std::mutex>;

  bool can_take() const { return !ready_.empty() && at_work_ < options_.threads; }
  bool is_over() const { return (unfinished_ == 0 || failure_) && running_ == 0; }
  void start_threads();
  void stop_threads();
  void run_in_order();
  void begin();
  void crew_member(Member& member);
  void lane_thread(std::size_t lane);
  void run_next(Member& member, Lock& lock);
  void run_task(int task, Lock& lock);
  void finish_task(int task);
  void fail(std::exception_ptr failure);
  void make_ready(int task);
  int take_ready();
  void put_to_work(Member& member, bool at_work);
  void wake(int spare);

  const TaskGraph graph_;
  const RunnerOptions options_;

  std::mutex mutex_;
  std::condition_variable caller_changed_;  // a task became ready, or the run is over
  std::condition_variable crew_changed_;    // a task became ready, or the end has come
  bool caller_waits_ = false;
  std::vector<int> waiting_for_;  // by task: dependencies not yet met in this run
  std::vector<int> ready_;        // for the crew: a heap, the next task in front
  std::size_t unfinished_ = 0;
  int running_ = 0;
  int at_work_ = 0;  // members of the crew
  bool closing_ = false;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<Member>> crew_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace fleetrun::runtime
