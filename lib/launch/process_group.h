// The workers of this node as processes: starts them, tells the Supervisor what happens, does what it says,
// and leaves nothing behind.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "launch/event_loop.h"
#include "launch/supervisor.h"
#include "launch/worker_plan.h"

namespace fleetrun::launch {

struct WorkerRecord {
  pid_t pid = -1;  // -1: never started
  std::chrono::system_clock::time_point started, ended;
};

struct ProcessGroupOptions {
  SupervisorOptions supervisor;
  int front_fd = -1;  // at its end the front process is gone
  // Called after each event, with what is known by then.
  std::function<void(const Event& event, const Verdict& verdict)> observe;
};

class ProcessGroup {
 public:
  // `logs`: stdout and stderr of each worker, in the same order.
  ProcessGroup(EventLoop& loop, std::vector<WorkerSpec> workers, std::vector<UniqueFd> logs,
               ProcessGroupOptions options);
  ~ProcessGroup();  // ends what still runs
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Runs the loop until no worker and no descendant of one is left, or one resists SIGKILL.
  const Verdict& run_until_done();
  const std::vector<WorkerRecord>& records() const { return records_; }
  const std::vector<pid_t>& survivors() const { return survivors_; }
  bool stop_requested() const;  // since the last event: for what is still to do when all workers are gone

 private:
  void start_all();
  void watch_signals();
  void watch_front();
  void dispatch(const Event& event);
  void act(const Terminate& action);
  void act(const Kill& action);
  void act(const WakeAt& action);
  void on_exit(std::size_t rank);
  void clean_up();

  EventLoop& loop_;
  std::vector<WorkerSpec> workers_;
  std::vector<UniqueFd> logs_;
  ProcessGroupOptions options_;
  Supervisor supervisor_;
  std::vector<WorkerRecord> records_;
  std::vector<UniqueFd> pidfds_;  // while the leader runs
  UniqueFd signals_;
  std::vector<pid_t> survivors_;
  bool clean_ = false;
};

}  // namespace fleetrun::launch
