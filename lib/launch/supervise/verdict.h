// How an attempt ended, as one node sees it: the cause, and the part that each rank had in it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launch/loop/clock.h"
#include "launch/process/exit_status.h"
#include "launch/supervise/exit_cause.h"

namespace fleetrun::launch {

enum class Role {
  running,        // also a rank that is still there after SIGKILL
  finished,       // ended with 0 by itself
  cause,          // the first failure
  stopped,        // ended because fleetrun asked it to
  failed_too,     // failed by itself, but another failure explains the end
  failed_after,   // ended in another way after fleetrun asked it to end
  never_started,  // a rank before it could not be started
};

struct RankVerdict {
  Role role = Role::running;
  std::optional<ExitStatus> status;  // of its leader
  TimePoint ended;
  bool leaves_processes = false;  // its leader has ended, but processes that it has left still run
  bool killed = false;            // fleetrun killed what was left of it
};

// The ranks of this node among those of the run.
struct RankSpan {
  int first = 0;  // the number of this node's first rank
  int world = 0;  // of all nodes

  bool operator==(const RankSpan&) const = default;
};

// Why the attempt ended, as this node sees it. `rank` is set for exited, killed and spawn, and for early_exit if that
// rank is on this node.
struct Verdict {
  Cause cause = Cause::finished;
  std::optional<int> rank;
  int signal = 0;       // stopped: the signal
  int spawn_error = 0;  // spawn: errno
  std::string origin;   // killed: who sent the signal, if we forwarded it: "fleetrun passed on"
  std::string why;      // hung, timed_out, early_exit, elsewhere: the reason in words
  int exit_code = 0;
  int attempt = 0;
  std::optional<TimePoint> asked_to_end, killed;  // when we asked the ranks to end; when we killed them
  bool crash_loop = false;  // restarting did not help: exit_code is gave_up, not the worker's code
  // The signal that came while the ranks ended, so that no restart followed. 0: none.
  int restart_stopped_by = 0;
  std::vector<RankVerdict> ranks;  // of this node; `rank` counts from its first one
  RankSpan span;

  int number_of(int local_rank) const { return span.first + local_rank; }  // in the whole run
};
// The numbers of the ranks, as these functions return them, are those of the whole run.
std::vector<int> ranks_that(const Verdict& verdict, Role role);
bool is_still_there(const RankVerdict& rank);
std::vector<int> ranks_still_there(const Verdict& verdict);  // that run, or have left processes
std::vector<int> ranks_killed(const Verdict& verdict);

// fleetrun ends the ranks, although none here has failed: the cause is on another node, or the ranks do not get on.
bool ends_without_failure(Cause cause);

void set_cause(Verdict& verdict, Cause cause,
               int code_of_event = 0);  // the code counts if the cause has none

// The exit code of a rank whose program could not be started, by errno.
int spawn_exit_code(int error);

// Ended by what we sent, or with a code that means so. `stop_signal` is the first that we sent.
bool obeyed(const ExitStatus& status, int stop_signal);

// The place, among those of this node, of the rank that finished first. At least one has finished.
int first_finished(const Verdict& verdict);

}  // namespace fleetrun::launch
