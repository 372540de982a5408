// What to do when something happens to the workers: a state machine without clock, processes or files.
//
//   running   --a rank fails--------> stopping: the other ranks are asked to end
//   running   --we are asked to end-> stopping
//   stopping  --the grace is over, or asked again--> killing: what is left is killed
//   killing   --the kill wait is over--------------> given up: somebody did not even die of SIGKILL
//   any       --no rank runs-------> done
//
// The first failure by time is the cause; what comes after a stop began is a consequence.
#pragma once
#include <optional>
#include <variant>
#include <vector>

#include "launch/clock.h"
#include "launch/exit_status.h"

namespace fleetrun::launch {

// Events.
struct WorkerExited {
  int rank = 0;
  ExitStatus status;
};
struct SpawnFailed {  // this rank; the ranks after it are never started
  int rank = 0;
  int error = 0;  // errno
};
struct StopRequested {  // somebody sent us this signal
  int signal = 0;
};
struct FrontLost {};  // the front process is gone: nobody waits for us any more
struct Woke {};       // a time given by WakeAt has come
using Event = std::variant<WorkerExited, SpawnFailed, StopRequested, FrontLost, Woke>;

// Actions.
struct Terminate {  // ask the leader of the rank to end
  int rank = 0;
  bool operator==(const Terminate&) const = default;
};
struct Kill {  // end the whole process group of the rank
  int rank = 0;
  bool operator==(const Kill&) const = default;
};
struct WakeAt {
  TimePoint time;
  bool operator==(const WakeAt&) const = default;
};
using Action = std::variant<Terminate, Kill, WakeAt>;
using Actions = std::vector<Action>;

enum class Cause { finished, exited, killed, spawn, stopped, front_lost };
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

// Why the run ended. `rank` is set for exited, killed and spawn.
struct Verdict {
  Cause cause = Cause::finished;
  std::optional<int> rank;
  int signal = 0;       // stopped: by which signal
  int spawn_error = 0;  // spawn: errno
  int exit_code = 0;
  std::vector<RankVerdict> ranks;
};

struct SupervisorOptions {
  Clock::duration grace = std::chrono::seconds(10);      // between SIGTERM and SIGKILL
  Clock::duration kill_wait = std::chrono::seconds(30);  // how long a killed process may take to go
};

class Supervisor {
 public:
  Supervisor(int ranks, SupervisorOptions options);

  Actions on(const Event& event, TimePoint now);
  bool done() const;  // no rank runs, or we gave up waiting for one
  const Verdict& verdict() const { return verdict_; }

 private:
  enum class Phase { running, stopping, killing, given_up };

  Actions handle(const WorkerExited& event, TimePoint now);
  Actions handle(const SpawnFailed& event, TimePoint now);
  Actions handle(const StopRequested& event, TimePoint now);
  Actions handle(const FrontLost& event, TimePoint now);
  Actions handle(const Woke& event, TimePoint now);
  Actions stop(TimePoint now);
  Actions kill(TimePoint now);
  template <typename Act>
  Actions for_each_running() const;

  SupervisorOptions options_;
  Phase phase_ = Phase::running;
  TimePoint deadline_;  // of stopping and killing
  Verdict verdict_;
};

}  // namespace fleetrun::launch
