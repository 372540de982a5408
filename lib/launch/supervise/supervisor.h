// What to do when something happens to the workers: a state machine without clock, processes or files.
//
//   running    --a rank fails, we are asked to end----------> stopping: the leaders of the ranks are asked to end
//   running    --no progress, --timeout---------------------> diagnosing: the roll is called, then stopping
//   stopping   --the grace is over--------------------------> stopping groups: their whole groups are asked
//   stopping (groups) --that is over, or Ctrl-C again-------> killing: what is left is killed
//   killing    --the kill wait is over----------------------> ended: somebody did not even die of SIGKILL
//   any        --no rank runs, and there may be a restart---> pausing, then running again
//   pausing    --we are asked to end, --timeout--------------> ended, and that is the cause
//   any        --no rank runs-------------------------------> ended
//   ended      --all nodes begin another attempt------------> running (several nodes: the Coordinator decides)
//
// The first failure by time is the cause; what comes after a stop began is a consequence.
//
// While the run is suspended (Ctrl-Z) all its clocks stand still: every deadline moves by the time that it took. The same holds
// while somebody stops the launcher itself: SIGSTOP, a freezer, another launcher above it that is suspended.
#pragma once
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "launch/loop/clock.h"
#include "launch/process/exit_status.h"
#include "launch/supervise/events.h"
#include "launch/supervise/exit_cause.h"
#include "launch/supervise/restart_policy.h"
#include "launch/supervise/run_clocks.h"

namespace fleetrun::launch {

enum class Role {
  running,        // also: did not die of SIGKILL in time
  finished,       // ended with 0 by itself
  cause,          // the first failure
  stopped,        // ended because fleetrun asked it to
  failed_after,   // ended with a code of its own after it was asked to end
  never_started,  // a rank before it could not be started
};

struct RankVerdict {
  Role role = Role::running;
  std::optional<ExitStatus> status;
  TimePoint ended;
};

// The ranks of this node among those of the run.
struct RankSpan {
  int first = 0;  // the number of this node's first rank
  int world = 0;  // of all nodes
};

// Why the attempt ended, as this node sees it. `rank` is set for exited, killed, spawn and early_exit.
struct Verdict {
  Cause cause = Cause::finished;
  std::optional<int> rank;
  int signal = 0;       // stopped: by which signal
  int spawn_error = 0;  // spawn: errno
  std::string origin;   // killed: of the signal, if it went through us: "fleetrun passed on"
  std::string why;      // hung, timed_out, early_exit, elsewhere: in words
  int exit_code = 0;
  int attempt = 0;
  std::optional<TimePoint> asked_to_end, killed;  // when the ranks were: by SIGTERM, by SIGKILL
  bool crash_loop = false;         // starting again had no use: exit_code says so, not what the worker said
  std::vector<RankVerdict> ranks;  // of this node; `rank` counts from its first one
  RankSpan span;

  int number_of(int local_rank) const { return span.first + local_rank; }  // in the whole run
};
std::vector<int> ranks_that(const Verdict& verdict, Role role);  // the numbers of those that have this one

struct SupervisorOptions {
  std::vector<int>
      stop_signals;  // that end the run beside SIGINT, SIGTERM and SIGHUP; the ranks get the same ones
  Clock::duration grace = std::chrono::seconds(10);  // between SIGTERM to the leaders and to their groups
  Clock::duration group_grace = std::chrono::milliseconds(500);  // from there to SIGKILL
  Clock::duration kill_wait = std::chrono::seconds(30);          // how long a killed process may take to go
  Clock::duration roll_call_wait = std::chrono::seconds(10);     // as long as a debugger takes for its stacks
  Clock::duration hold_wait = std::chrono::seconds(1);           // for what is asked to stop to do so
  std::optional<Clock::duration> timeout;                        // of the whole run
  std::optional<Clock::duration> early_exit_wait;  // how long ranks may run when one has finished
  RestartPolicy restart;
  std::optional<RankSpan> span;  // none: this node has all ranks
};

class Supervisor {
 public:
  Supervisor(int ranks, SupervisorOptions options);

  Actions start(TimePoint now);
  Actions start_again(TimePoint now);  // over several nodes, which agreed on it; all ranks have ended
  Actions on(const Event& event, TimePoint now);
  // While this node waits for the others between two attempts, when it has no ranks: how the event ends the run; none: it does not.
  std::optional<Verdict> end_between_attempts(const Event& event, TimePoint now);
  std::optional<TimePoint> timeout() const { return clocks_.timeout; }  // of the run; Ctrl-Z puts it off
  bool done() const { return phase_ == Phase::ended; }
  bool suspended() const { return clocks_.stand_still(); }
  const Verdict& verdict() const { return verdict_; }  // of the present attempt

 private:
  enum class Phase { running, diagnosing, stopping, stopping_groups, killing, pausing, ended };

  Actions handle(const WorkerExited& event, TimePoint now);
  Actions handle(const SpawnFailed& event, TimePoint now);
  Actions handle(const SignalReceived& event, TimePoint now);
  Actions handle(const HangFound& event, TimePoint now);
  Actions handle(const RollCalled& event, TimePoint now);
  Actions handle(const FrontLost& event, TimePoint now);
  Actions handle(const Woke& event, TimePoint now);
  Actions handle(const StoodStill& event, TimePoint now);
  Actions handle(const EndedElsewhere& event, TimePoint now);
  Actions handle(const SignalElsewhere& event, TimePoint now);
  Actions handle(const FinishedElsewhere& event, TimePoint now);
  Actions handle(const HurryAsked&, TimePoint now) { return hurry(now); }
  Actions handle(const NodesAnswered&, TimePoint) { return {}; }

  bool stopping() const { return phase_ == Phase::stopping || phase_ == Phase::stopping_groups; }
  Actions hurry(TimePoint now) { return stopping() ? kill(now) : Actions(); }
  Actions begin_attempt(TimePoint now);
  void forget_attempt();
  Actions end_by_signal(int signal, TimePoint now);
  Actions obey(int signal, TimePoint now);  // one that does not end the run: suspends, continues, passes on
  Actions await_others(TimePoint now);
  Actions suspend(TimePoint now);
  Actions go_on(TimePoint now);
  void start_clocks(TimePoint now);
  void set_cause(Cause cause, int code_of_event = 0);  // which counts where the table has no code
  Actions wake_ups() const;
  Actions diagnose(std::string why, TimePoint now);
  Actions fail_early_exit(TimePoint now);
  Actions wake_while_running(TimePoint now);
  Actions end_pause(Cause cause, int code_of_event = 0);
  std::string describe_timeout() const;
  Actions stop(TimePoint now);
  void decide_restart(TimePoint now);
  Actions stop_groups(TimePoint now);
  Actions kill(TimePoint now);
  Actions end_of_ranks(TimePoint now);
  bool any_running() const;
  template <typename Act, typename... More>
  Actions for_each_running(More... more) const;

  SupervisorOptions options_;
  int stop_signal_ = SIGTERM;  // what asks the ranks to end
  RestartCounter restarts_;
  Phase phase_ = Phase::running;
  std::optional<Clock::duration> restart_in_;  // when all ranks have ended, after this pause
  bool suspended_ = false;                     // by SIGTSTP, until SIGCONT or until we are asked to end
  bool roll_called_ = false;                   // while suspended: stop() waits until the run goes on
  std::optional<TimePoint> hold_at_;           // real time, unlike the clocks
  std::optional<int> finished_elsewhere_;      // the first rank that finished, when it was another node's
  RunClocks clocks_;
  Verdict verdict_;
};

}  // namespace fleetrun::launch
