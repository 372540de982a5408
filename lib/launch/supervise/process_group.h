// The workers of this node as processes: starts them, tells the Supervisor what happens, does what it says,
// and leaves nothing behind.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "launch/loop/clock.h"
#include "launch/loop/event_loop.h"
#include "launch/plan/worker_plan.h"
#include "launch/process/death_watch.h"
#include "launch/process/run_cgroup.h"
#include "launch/process/signals.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

struct WorkerRecord {
  pid_t pid = -1;  // -1: never started
  Moment started, ended;
  double cpu_seconds = 0;  // of processor time, without its children's, once it has ended
};

// A signal to a rank that somebody asked us to send.
struct SentSignal {
  int signal = 0;
  std::string sender;
};

// What one attempt at the run starts.
struct Attempt {
  std::vector<WorkerSpec> workers;
  std::vector<UniqueFd> logs;        // stdout of each worker, in the same order, and stderr
  std::vector<UniqueFd> error_logs;  // stderr of those where it is apart, else closed ones
};

struct ProcessGroupOptions {
  SupervisorOptions supervisor;
  int front_fd = -1;       // at its end the front process is gone
  bool use_cgroup = true;  // where one can be made
  std::function<Attempt(int attempt)> prepare;
  // Called after each event, with what is known by then, and before anything is done about it.
  std::function<void(const Event& event, const Verdict& verdict)> observe;
  // All processes of an attempt are gone, and another one will follow after `delay`.
  std::function<void(Clock::duration delay)> attempt_ended;
  // Starts to find out what each rank is doing; RollCalled tells the end.
  std::function<void()> call_roll;
  std::function<void(std::string_view line)> say;
};

class ProcessGroup {
 public:
  ProcessGroup(EventLoop& loop, int ranks, ProcessGroupOptions options);
  ~ProcessGroup();  // ends what still runs
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Runs the loop until no worker and no descendant of one is left, or one resists SIGKILL.
  const Verdict& run_until_done();
  void tell(const Event& event);  // what others found out
  // To its leader, because somebody asked for it; false when that does not run.
  bool send(int rank, int signal, const std::string& sender);
  const Verdict& verdict() const { return supervisor_.verdict(); }
  const std::vector<WorkerRecord>& records() const { return records_; }  // of the present attempt
  const std::vector<pid_t>& survivors() const { return survivors_; }
  bool stop_requested();  // since the last event: for what is still to do when all workers are gone

 private:
  void watch_signals();
  void on_signal(const ReceivedSignal& signal);
  void watch_front();
  void beat();
  void notice_lost_time();
  void perform(const Actions& actions);
  void act(const StartAttempt& action);
  void act(const EndAttempt& action);
  void act(const Terminate& action);
  void act(const TerminateGroup& action);
  void act(const Kill& action);
  void act(const PassOn& action);
  void act(const Pause& action);
  void act(const Hold& action);
  void act(const Resume& action);
  void act(const CallRoll& action);
  void act(const WakeAt& action);
  void signal_group(int rank, int signal) const;
  void release();
  void on_exit(std::size_t rank);
  void end_processes();

  EventLoop& loop_;
  ProcessGroupOptions options_;
  Supervisor supervisor_;
  std::vector<WorkerRecord> records_;
  DeathWatch deaths_;
  std::vector<UniqueFd> pidfds_;       // while the leader runs
  std::vector<SentSignal> sent_;       // to each rank, the last one that somebody asked for
  std::map<pid_t, UniqueFd> held_;     // processes below the ranks that Hold stopped
  std::vector<PassOn> left_alone_;     // what was not passed on, because the rank does not handle it
  std::unique_ptr<RunCgroup> cgroup_;  // of the present attempt
  UniqueFd signals_;
  SignalRepeats repeats_;
  std::vector<pid_t> survivors_;
  TimePoint awake_at_ = Clock::now();  // the last time that we know that we ran
  bool may_have_processes_ = false;
};

}  // namespace fleetrun::launch
