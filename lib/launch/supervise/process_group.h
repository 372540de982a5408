// The workers of this node as processes: starts them, signals them, and ends them with all their descendants. It
// decides nothing: it pushes the end of each worker into the queue as an event, and acts when the run loop calls it.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/loop/event_loop.h"
#include "launch/loop/timer.h"
#include "launch/plan/port_guard.h"
#include "launch/plan/worker_plan.h"
#include "launch/process/death_watch.h"
#include "launch/process/pipe_readers.h"
#include "launch/process/run_cgroup.h"
#include "launch/process/run_input.h"
#include "launch/process/terminal_loan.h"
#include "launch/process/usual_waits.h"
#include "launch/supervise/event_queue.h"
#include "launch/supervise/left_of_ranks.h"
#include "launch/supervise/run_state.h"

namespace fleetrun::launch {

// What one attempt at the run starts.
struct Attempt {
  HeldPorts ports;  // for the workers
  std::vector<WorkerSpec> workers;
  std::vector<UniqueFd> logs;        // stdout of each worker, in the same order, and stderr
  std::vector<UniqueFd> error_logs;  // for workers that log stderr apart; empty for others
};

struct ProcessGroupOptions {
  int ranks = 1;
  // Then no rank reads a pipe, because a later attempt would miss what was read.
  bool may_start_again = false;
  bool use_cgroup = true;  // if fleetrun can make one
  Clock::duration kill_wait = kUsualKillWait;
  std::optional<int> interactive;      // the number in the run of the rank that has the terminal
  std::vector<int> stop_signals = {};  // besides those that always end a run
  std::function<void(std::string_view line)> say = [](std::string_view) {};
};

// Fifteen members, because all that has to end with the ranks is here: their processes, the cgroup and the loan of the terminal.
class ProcessGroup {
 public:
  ProcessGroup(EventLoop& loop, EventQueue& events, ProcessGroupOptions options);  // both outlive it
  ~ProcessGroup();  // ends all processes that still run
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // If a worker cannot be started, pushes SpawnFailed and starts no further workers.
  void start(const Attempt& attempt);
  // What the ranks have left may end by itself, as `tee` does after it has written the last words of its rank.
  void wait_for_left(TimePoint latest) const;
  // Kills all processes below us that are left, and waits a while until they are gone.
  void end();
  // The same after they had time. Filters, which read a pipe, first write what they have read, as `readers` allows. The others get SIGTERM, and
  // `patience` to end; then the filters again, which may only now see the end of their pipes.
  void end(Clock::duration patience, const ReaderPatience& readers);

  void act(const Terminate& action);
  void act(const TerminateGroup& action);
  void act(const Kill& action);
  void act(const Pause& action);
  void act(const Hold& action);
  void act(const Resume& action);
  void release();                      // what Hold has stopped goes on
  bool pass_on(int rank, int signal);  // false: the signal would end the leader, and was not sent

  // Whether SIGUSR1 or SIGUSR2 would end the leader, because the leader has no handler for it. False for other signals.
  bool would_end(int rank, int signal) const;
  // A child has stopped. If Ctrl-Z stopped the interactive rank, or it uses the terminal while the run is in the background, suspends the
  // whole run, as the shell would suspend a program of its own.
  void look_for_stop();
  // Says which other ranks have stopped since they, or programs that they started, use the terminal.
  void tell_who_wants_terminal() const;
  // Pushes an event for each worker that has ended by now; false when there is none.
  bool look_for_deaths();

  // Sends a signal to the leader of the rank on behalf of `sender`; false when the leader does not run.
  bool send(int rank, int signal, const std::string& sender);

  const std::vector<WorkerRecord>& records() const { return records_; }  // of the present attempt
  const std::vector<pid_t>& survivors() const { return survivors_; }     // processes that end() could not end

 private:
  struct Leader {
    UniqueFd pidfd;  // empty once it has ended
    int number = 0;  // of the rank in the run
    int sent = 0;    // the last signal that we forwarded
    TimePoint sent_at;
    std::string origin;           // of that signal: "process 4711 sent with fleetrun signal"
    int asked = 0;                // the signal with which it was asked to end
    bool others_asked = false;    // somebody had sent it SIGTERM before fleetrun asked it
    bool group_asked = false;     // its whole group got that signal
    std::set<pid_t> handlers;     // below it: they had a handler for that signal then
    std::set<pid_t> below_asked;  // below it: they got SIGTERM, too
    std::set<pid_t> filters;      // below it: they read what it, or one of these, prints
  };

  std::optional<ExitStatus> status_of_ended(std::size_t rank) const;
  bool has_sigterm(std::size_t rank) const;
  LeftOfRanks::Request request_of(std::size_t rank, const ExitStatus& status) const;
  void on_exit(std::size_t rank, const ExitStatus& status, const LeftByRank& left);
  bool leaves_processes(std::size_t rank, const LeftOfRanks::Request& request, const LeftByRank& left);
  void watch_left();
  void ask_left(Clock::duration patience, const ReaderPatience& readers);
  std::vector<pid_t> leaders() const;
  std::vector<pid_t> own_children() const;
  LeftByRank list_left_by_rank() const;
  void note_end_by_key(std::size_t rank, const ExitStatus& status);
  void lend_terminal();
  static bool deliver(Leader& leader, int signal, std::string origin);
  void signal_group(int rank, int signal) const;
  void note_handlers(std::size_t rank, int signal);
  void interrupt_group(std::size_t rank) const;
  void ask_below(std::size_t rank, const std::vector<pid_t>& below);

  EventLoop& loop_;
  EventQueue& events_;
  ProcessGroupOptions options_;
  RunInput input_;
  std::vector<WorkerRecord> records_;
  std::vector<Leader> leaders_;
  DeathWatch deaths_;
  LeftOfRanks left_;
  Timer look_at_left_;
  std::map<pid_t, UniqueFd> held_;     // processes below the ranks that Hold stopped
  std::unique_ptr<RunCgroup> cgroup_;  // of the present attempt
  std::vector<pid_t> survivors_;
  TerminalLoan terminal_;
  std::optional<std::size_t> interactive_;  // the rank that has the terminal, if it is on this node
  bool may_have_processes_ = false;
};

}  // namespace fleetrun::launch
