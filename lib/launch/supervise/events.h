// What happens to a run, and what the Supervisor wants done about it.
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
  std::string origin;  // of the signal that killed it, if that went through fleetrun: "fleetrun passed on"
};
struct SpawnFailed {  // this rank; the ranks after it are never started
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
struct FrontLost {};     // the front process is gone: nobody waits for us any more
struct Woke {};          // a time given by WakeAt has come
struct StoodStill {      // somebody stopped this process (SIGSTOP, a freezer)
  Clock::duration time;  // for how long
};
struct EndedElsewhere {  // another node's failure, or its loss, ends the run
  std::string why;       // "rank 5 exited with code 3"
  int exit_code = 0;
  bool call_roll = false;  // the ranks as a whole are the cause, such as no progress
};
struct SignalElsewhere {  // another node's fleetrun received this signal, which all nodes obey
  int signal = 0;
};
struct FinishedElsewhere {  // this rank of another node, as the first one there
  int rank = 0;             // its number in the run
};
struct HurryAsked {};     // somebody on another node does not want to wait for ranks that are stopped
struct NodesAnswered {};  // what this node waited for from the others has come
using Event =
    std::variant<WorkerExited, SpawnFailed, SignalReceived, HangFound, RollCalled, FrontLost, Woke,
                 StoodStill, EndedElsewhere, SignalElsewhere, FinishedElsewhere, HurryAsked, NodesAnswered>;

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
struct PassOn {  // send the signal to the leader of the rank, unless it would end the leader
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
struct Resume {  // every process of the rank that Pause or Hold stopped
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
