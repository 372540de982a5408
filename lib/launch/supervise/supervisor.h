// What to do when something happens to the workers: a state machine without clock, processes or files.
//
//   running    --a rank fails, we are asked to end----------> stopping: the leaders of the ranks are asked to end
//   running    --no progress, --timeout---------------------> diagnosing: the roll is called, then stopping
//   stopping   --the grace is over--------------------------> stopping groups: their whole groups are asked
//   stopping.. --that is over, or Ctrl-C again--------------> killing: what is left is killed
//   killing    --the kill wait is over----------------------> ended: somebody did not even die of SIGKILL
//   any        --no rank runs, and there may be a restart---> pausing, then running again
//   any        --no rank runs-------------------------------> ended
//
// The first failure by time is the cause; what comes after a stop began is a consequence.
//
// While the run is suspended (Ctrl-Z) all its clocks stand still: every deadline moves by the time that it took. The same holds
// while somebody stops the launcher itself: SIGSTOP, a freezer, another launcher above it that is suspended.
#pragma once
#include <csignal>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "launch/loop/clock.h"
#include "launch/process/exit_status.h"
#include "launch/supervise/restart_policy.h"

namespace fleetrun::launch {

// Events.
struct WorkerExited {
  int rank = 0;
  ExitStatus status;
  std::string sender;  // who had the signal sent that killed it, if that went through us
};
struct SpawnFailed {  // this rank; the ranks after it are never started
  int rank = 0;
  int error = 0;  // errno
};
struct SignalReceived {  // somebody sent us this signal
  int signal = 0;
};
struct HangFound {  // by the HangWatch
  std::string why;  // "no output and no work for 60 s"
};
struct RollCalled {};  // the roll that CallRoll asked for is complete
struct FrontLost {};   // the front process is gone: nobody waits for us any more
struct Woke {};        // a time given by WakeAt has come
struct StoodStill {    // somebody stopped this process for so long, without a signal that it could read
  Clock::duration time;
};
using Event = std::variant<WorkerExited, SpawnFailed, SignalReceived, HangFound, RollCalled, FrontLost, Woke,
                           StoodStill>;

// Actions.
struct StartAttempt {  // all ranks, with new ports
  int attempt = 0;
  bool operator==(const StartAttempt&) const = default;
};
struct EndAttempt {  // nothing of it may be left; `delay` until the next one
  Clock::duration delay;
  bool operator==(const EndAttempt&) const = default;
};
struct Terminate {  // ask the leader of the rank to end
  int rank = 0;
  int signal = SIGTERM;
  bool operator==(const Terminate&) const = default;
};
struct TerminateGroup {  // ask every process of the rank's group to end
  int rank = 0;
  bool operator==(const TerminateGroup&) const = default;
};
struct Kill {  // end the whole process group of the rank
  int rank = 0;
  bool operator==(const Kill&) const = default;
};
struct PassOn {  // to the leader of the rank, if that would not end it
  int rank = 0;
  int signal = 0;
  bool operator==(const PassOn&) const = default;
};
struct Pause {  // asks the whole group of the rank to stop, as Ctrl-Z does
  int rank = 0;
  bool operator==(const Pause&) const = default;
};
struct Hold {  // stops every process below the ranks that has not stopped yet
  bool operator==(const Hold&) const = default;
};
struct Resume {  // what Pause and Hold stopped
  int rank = 0;
  bool operator==(const Resume&) const = default;
};
struct CallRoll {  // find out what each rank is doing; RollCalled answers
  bool operator==(const CallRoll&) const = default;
};
struct WakeAt {
  TimePoint time;
  bool operator==(const WakeAt&) const = default;
};
using Action = std::variant<StartAttempt, EndAttempt, Terminate, TerminateGroup, Kill, PassOn, Pause, Hold,
                            Resume, CallRoll, WakeAt>;
using Actions = std::vector<Action>;

enum class Cause { finished, exited, killed, spawn, stopped, front_lost, hung, timed_out, early_exit };
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

// Why the attempt ended. `rank` is set for exited, killed, spawn and early_exit.
struct Verdict {
  Cause cause = Cause::finished;
  std::optional<int> rank;
  int signal = 0;       // stopped: by which signal
  int spawn_error = 0;  // spawn: errno
  std::string sender;   // killed: who had the signal sent through us
  std::string why;      // hung, timed_out, early_exit: in words
  int exit_code = 0;
  int attempt = 0;
  std::optional<TimePoint> asked_to_end, killed;  // when the ranks were: by SIGTERM, by SIGKILL
  bool crash_loop = false;  // starting again had no use: exit_code says so, not what the worker said
  std::vector<RankVerdict> ranks;
};
std::vector<int> ranks_that(const Verdict& verdict, Role role);  // have this one

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
};

class Supervisor {
 public:
  Supervisor(int ranks, SupervisorOptions options);

  Actions start(TimePoint now);
  Actions on(const Event& event, TimePoint now);
  bool done() const { return phase_ == Phase::ended; }
  bool running() const { return phase_ == Phase::running; }
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

  Actions begin_attempt(TimePoint now);
  Actions end_by_signal(int signal, TimePoint now);
  Actions suspend(TimePoint now);
  Actions go_on(TimePoint now);
  void start_clocks(TimePoint now);
  Actions wake_ups() const;
  Actions diagnose(Cause cause, ErrorKind kind, std::string why, TimePoint now);
  Actions fail_early_exit(TimePoint now);
  Actions wake_while_running(TimePoint now);
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
  bool no_restart_ = false;                    // we were asked to end
  bool suspended_ = false;                     // by SIGTSTP, until SIGCONT or until we are asked to end
  bool roll_called_ = false;                   // while suspended, when that must not end the run yet
  std::optional<TimePoint> still_since_;       // the clocks stand still
  std::optional<TimePoint> hold_at_;           // real time, unlike the next ones
  TimePoint deadline_;                         // of every phase but running
  TimePoint started_;                          // the present attempt
  std::optional<TimePoint> timeout_at_, early_exit_at_;
  Verdict verdict_;
};

}  // namespace fleetrun::launch
