// The events of a run, and the actions with which the Supervisor responds.
#pragma once
#include <csignal>
#include <string>
#include <variant>
#include <vector>

#include "launch/loop/clock.h"
#include "launch/process/exit_status.h"

namespace fleetrun::launch {

// Events.
struct WorkerExited {
  int rank = 0;
  ExitStatus status;
  std::string origin;  // who sent the signal that killed it, if fleetrun forwarded that: "fleetrun passed on"
  bool leaves_processes =
      false;               // a signal asked it to end, and what it has started still runs; LeftEnded follows
  bool by_itself = false;  // before fleetrun asked any rank to end, whenever this event is handled
};
struct LeftEnded {  // what the leader of this rank has left has ended
  int rank = 0;
};
struct SpawnFailed {  // could not start this rank, and will not start the ranks after it
  int rank = 0;
  int error = 0;  // errno
};
struct SignalReceived {  // somebody sent us this signal
  int signal = 0;
};
struct HangFound {  // the HangRules found a hang
  std::string why;  // "no output and no work for 60 s"
};
struct RollCalled {};    // the roll that CallRoll asked for is complete
struct FrontLost {};     // the front process is gone
struct Woke {};          // a time given by WakeAt has come
struct StoodStill {      // somebody stopped this process (SIGSTOP, a freezer)
  Clock::duration time;  // for how long
};
struct EndedElsewhere {  // another node's failure, or its loss, ends the run
  std::string why;       // "rank 5 exited with code 3"
  int exit_code = 0;
  bool call_roll = false;  // the cause is not one rank or node, but all ranks, such as no progress
  int signal = 0;          // that somebody sent to the other node, and that ended the run; 0: none
};
struct SignalElsewhere {  // another node's fleetrun received this signal, which all nodes obey
  int signal = 0;
};
struct FinishedElsewhere {  // the first rank of the run to finish, on another node
  int rank = 0;             // its number in the run
};
struct HurryAsked {};     // somebody on another node pressed Ctrl-C again: kill the ranks
struct NodesAnswered {};  // the answer that this node waited for has arrived
using Event =
    std::variant<WorkerExited, LeftEnded, SpawnFailed, SignalReceived, HangFound, RollCalled, FrontLost, Woke,
                 StoodStill, EndedElsewhere, SignalElsewhere, FinishedElsewhere, HurryAsked, NodesAnswered>;

// Actions.
struct StartAttempt {  // all ranks, with new ports
  int attempt = 0;
  bool operator==(const StartAttempt&) const = default;
};
struct EndAttempt {  // end every process that is left; the next attempt begins after `delay`
  Clock::duration delay;
  bool operator==(const EndAttempt&) const = default;
};
struct Terminate {  // ask the leader of the rank to end, and then what it leaves in its process group
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
struct PassOn {  // send the signal to the leader of the rank, unless the signal would end the leader
  int rank = 0;
  int signal = 0;
  bool operator==(const PassOn&) const = default;
};
struct Pause {  // ask the whole group of the rank to stop, as Ctrl-Z does
  int rank = 0;
  bool operator==(const Pause&) const = default;
};
struct Hold {  // stop every process below fleetrun that has not stopped yet
  bool operator==(const Hold&) const = default;
};
struct Resume {  // continue the group of the rank, and every process that Hold stopped
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

}  // namespace fleetrun::launch
