// The workers of this node as processes: starts them, signals them, and ends them with all their descendants. It decides nothing: how a
// worker ended goes into the queue of events, and the run loop says what to do.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/plan/port_guard.h"
#include "launch/plan/worker_plan.h"
#include "launch/process/death_watch.h"
#include "launch/process/run_cgroup.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

// What one attempt at the run starts.
struct Attempt {
  HeldPorts ports;  // for the workers
  std::vector<WorkerSpec> workers;
  std::vector<UniqueFd> logs;        // stdout of each worker, in the same order, and stderr
  std::vector<UniqueFd> error_logs;  // stderr of those where it is apart, else closed ones
};

struct ProcessGroupOptions {
  int ranks = 1;
  bool use_cgroup = true;  // where one can be made
  Clock::duration kill_wait = std::chrono::seconds(30);
};

class ProcessGroup {
 public:
  ProcessGroup(EventLoop& loop, EventQueue& events, ProcessGroupOptions options);  // both outlive it
  ~ProcessGroup();                                                                 // ends what still runs
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // A worker that cannot be started is an event, and those after it are never started.
  void start(const Attempt& attempt);
  void end();  // kills what is left below us and waits a while for it to be gone

  void act(const Terminate& action);
  void act(const TerminateGroup& action);
  void act(const Kill& action);
  void act(const Pause& action);
  void act(const Hold& action);
  void act(const Resume& action);
  bool pass_on(int rank, int signal);  // false: the signal would end the leader, and was not sent

  // Whether this signal, which asks something of a program (SIGUSR1, SIGUSR2), finds no handler in the leader, and so would end it.
  bool would_end(int rank, int signal) const;
  // Puts the deaths that the kernel knows of into the queue; false when there are none.
  bool look_for_deaths();

  // To the leader of the rank, because somebody asked for it; false when that does not run.
  bool send(int rank, int signal, const std::string& sender);

  const std::vector<WorkerRecord>& records() const { return records_; }  // of the present attempt
  const std::vector<pid_t>& survivors() const { return survivors_; }     // of end()

 private:
  struct Leader {
    UniqueFd pidfd;  // while it runs
    int sent = 0;    // the last signal that somebody had sent through us
    TimePoint sent_at;
    std::string origin;  // of it: "process 4711 sent with fleetrun signal"
  };

  void on_exit(std::size_t rank);
  static bool deliver(Leader& leader, int signal, std::string origin);
  void signal_group(int rank, int signal) const;
  void release();

  EventLoop& loop_;
  EventQueue& events_;
  ProcessGroupOptions options_;
  std::vector<WorkerRecord> records_;
  std::vector<Leader> leaders_;
  DeathWatch deaths_;
  std::map<pid_t, UniqueFd> held_;     // processes below the ranks that Hold stopped
  std::unique_ptr<RunCgroup> cgroup_;  // of the present attempt
  std::vector<pid_t> survivors_;
  bool may_have_processes_ = false;
};

}  // namespace fleetrun::launch
