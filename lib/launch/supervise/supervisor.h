// What to do when something happens to the workers: a state machine without clock, processes or files.
//
//   running    --a rank fails, or a signal ends the run-----> stopping: ask the leaders of the ranks to end
//   running    --no progress, --timeout, ranks that do not
//                follow one that finished, or a roll call of
//                another node-------------------------------> diagnosing: call the roll, then stopping
//   stopping   --the leader of a rank ends------------------> stopping: the rank counts until what it leaves has ended
//   stopping   --the grace is over--------------------------> stopping groups: ask the groups of the ranks to end
//   stopping groups --the group grace is over---------------> killing: kill every rank that is left
//   stopping, stopping groups --a second signal, Ctrl-C-----> killing
//   diagnosing --a signal ends the run----------------------> stopping
//   any        --the front process is gone------------------> killing; ended if it was pausing
//   killing    --the kill wait is over----------------------> ended: a rank is still there after SIGKILL
//   any        --no rank runs, and a restart is due---------> pausing, then running again
//   pausing    --a signal ends the run, or --timeout--------> ended, for that cause
//   any but diagnosing --no rank runs-----------------------> ended
//   ended      --all nodes begin another attempt------------> running (several nodes: the Coordinator decides)
//
// The failure that happened first is the cause. Failures after the stop began are consequences. But somebody who signals all processes
// of a run may reach a rank before fleetrun: if fleetrun gets such a signal right after a rank died of one, the signal is the cause.
//
// While the run is suspended (Ctrl-Z), all its clocks stand still: every deadline moves by the length of the
// suspension. The same holds while somebody stops the launcher itself, by SIGSTOP, by a freezer, or by suspending a
// launcher above it.
#pragma once
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "base/error/error.h"
#include "launch/loop/clock.h"
#include "launch/process/exit_status.h"
#include "launch/process/usual_waits.h"
#include "launch/supervise/events.h"
#include "launch/supervise/exit_cause.h"
#include "launch/supervise/restart_policy.h"
#include "launch/supervise/run_clocks.h"
#include "launch/supervise/verdict.h"

namespace fleetrun::launch {

struct SupervisorOptions {
  std::vector<int>
      stop_signals;  // end the run, like SIGINT, SIGTERM and SIGHUP; the ranks get the same signal
  Clock::duration grace = kUsualGrace;  // from the first request until SIGTERM to groups
  Clock::duration group_grace = std::chrono::milliseconds(500);  // from then until SIGKILL
  Clock::duration kill_wait = kUsualKillWait;  // how long a killed process may take to disappear
  Clock::duration roll_call_wait = std::chrono::seconds(10);  // a debugger needs this long for the stacks
  Clock::duration hold_wait = std::chrono::seconds(1);        // from Pause until Hold
  std::optional<Clock::duration> timeout;                     // of the whole run
  std::optional<Clock::duration> early_exit_wait;             // how long ranks may run when one has finished
  RestartPolicy restart;
  std::optional<RankSpan> span;  // none: this node has all ranks
  int first_attempt = 0;         // of this node, which may have joined during the run
};

// Many members: any event may come in any phase, so one state machine knows the attempt, its clocks and its end. What it does in the
// pause between two attempts is in supervisor_between_attempts.cpp.
class Supervisor {
 public:
  // For the signals that somebody sends to the processes of a run one after the other.
  static constexpr auto kTimeForSignals = std::chrono::milliseconds(100);

  Supervisor(int ranks, SupervisorOptions options);

  Actions start(TimePoint now);
  // A run over several nodes begins with the attempt and the ranks that the nodes have agreed on.
  Actions start(TimePoint now, int attempt, const RankSpan& span);
  Actions start_again(TimePoint now);
  // Several nodes have agreed on an attempt and on the numbers of their ranks.
  Actions start_again(int attempt, const RankSpan& span, TimePoint now);
  Actions on(const Event& event, TimePoint now);
  // The highest step that a rank of this attempt has done, for the decision about a restart.
  void saw_step(std::int64_t step) { step_ = step; }
  // Another attempt would only train again what is trained.
  void forbid_restarts() { restarts_.forbid(); }
  // Between two attempts over several nodes, while no rank runs here: how the event ends the run; none: it does not.
  std::optional<Verdict> end_between_attempts(const Event& event, TimePoint now);
  std::optional<TimePoint> timeout() const { return clocks_.timeout; }  // of the run; Ctrl-Z puts it off
  // No attempt follows, because somebody asked the run to end, its timeout has passed, or the training is done.
  bool must_not_restart(TimePoint now) const;
  int asked_by() const { return asked_by_; }  // the first signal to this node that did so; 0: none
  bool done() const { return phase_ == Phase::ended; }
  bool suspended() const { return clocks_.stand_still(); }
  const Verdict& verdict() const { return verdict_; }  // of the present attempt

 private:
  enum class Phase { running, diagnosing, stopping, stopping_groups, killing, pausing, ended };

  Actions handle(const WorkerExited& event, TimePoint now);
  Actions handle(const LeftEnded& event, TimePoint now);
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
  bool is_chosen(int signal) const;     // by --signals_to_handle
  bool ends_the_run(int signal) const;  // when this node's fleetrun receives it
  bool may_be_one_of_many(const WorkerExited& end) const;
  Actions end_by_signal(int signal, TimePoint now);
  Actions take_for_stop(int signal, TimePoint now);
  int signal_for_ranks(int signal) const;
  Actions obey(int signal, TimePoint now);  // a signal that does not end the run: suspend, continue, pass on
  Actions await_others(TimePoint now);
  Actions suspend(TimePoint now);
  Actions go_on(TimePoint now);
  void start_clocks(TimePoint now);
  void set_cause(Cause cause, int code_of_event = 0);  // the code counts if the cause has none
  Actions wake_ups() const;
  Actions diagnose(std::string why, TimePoint now);
  Actions fail_early_exit(TimePoint now);
  Actions wake_while_running(TimePoint now);
  Actions wake_while_stopping(TimePoint now);
  Actions end_pause(Cause cause, int code_of_event = 0);
  bool has_timed_out(TimePoint now) const;
  std::string describe_timeout() const;
  Actions stop(TimePoint now);
  void decide_restart(TimePoint now);
  Actions stop_groups(TimePoint now);
  Actions kill(TimePoint now);
  Actions end_of_ranks(TimePoint now);
  bool any_running() const;
  bool any_there() const;  // runs, or has left a process group that we wait for
  template <typename Act>
  Actions for_each_there() const;
  template <typename Act, typename... More>
  Actions for_each_running(More... more) const;

  SupervisorOptions options_;
  int stop_signal_ = SIGTERM;  // the signal that asks the ranks to end
  RestartCounter restarts_;
  Phase phase_ = Phase::running;
  std::optional<Clock::duration> restart_in_;  // pause before the restart; none: no restart
  int asked_by_ = 0;                  // the first signal to this node, in this attempt, that asked to end
  bool suspended_ = false;            // by SIGTSTP, until SIGCONT or until we are asked to end
  bool roll_called_ = false;          // in a suspended run, which stops as soon as it goes on
  std::optional<TimePoint> hold_at_;  // in real time, not on these clocks
  std::optional<int> finished_elsewhere_;  // the first rank that finished, if on another node
  std::optional<std::int64_t> step_;       // none: the ranks do not tell
  RunClocks clocks_;
  Verdict verdict_;
};

}  // namespace fleetrun::launch
