// Ctrl-Z, and a launcher that somebody stops: the clocks of the Supervisor stand still.
#include <chrono>
#include <csignal>

#include <doctest/doctest.h>

#include "launch/supervise/supervisor.h"
#include "launch/supervise/supervisor_events.h"

namespace fleetrun::launch::suspension_of_supervisor_test {
namespace {

using namespace std::chrono_literals;
using supervisor_events::at;
using supervisor_events::exit_of;
using supervisor_events::exited;
using supervisor_events::killed_by;

TEST_CASE("the time in which a signal to us explains the first death begins when a suspended run goes on") {
  Supervisor supervisor(1, {.grace = 10s});
  supervisor.start(at(0s));
  supervisor.on(SignalReceived{SIGTSTP}, at(1s));
  CHECK(supervisor.on(exit_of(0, killed_by(SIGTERM)), at(7s)) == Actions{WakeAt{at(7100ms)}});
  supervisor.on(Woke{}, at(7100ms));
  CHECK(supervisor.done());
}

TEST_CASE("a signal to us that explains the first death resumes a run that was suspended meanwhile") {
  Supervisor supervisor(2, {.grace = 10s});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, killed_by(SIGTERM)), at(1s));
  supervisor.on(SignalReceived{SIGTSTP}, at(1050ms));
  CHECK(supervisor.on(SignalReceived{SIGTERM}, at(5050ms)) == Actions{Resume{1}, WakeAt{at(15s)}});
  CHECK(supervisor.verdict().cause == Cause::stopped);
}

TEST_CASE("a stopped terminal job pauses and continues its ranks") {
  Supervisor supervisor(2, {});
  supervisor.start(at(0s));
  CHECK(supervisor.on(SignalReceived{SIGTSTP}, at(1s)) == Actions{Pause{0}, Pause{1}, WakeAt{at(2s)}});
  CHECK(supervisor.on(SignalReceived{SIGTSTP}, at(1s)).empty());
  CHECK(supervisor.on(SignalReceived{SIGCONT}, at(2s)) == Actions{Resume{0}, Resume{1}});
  CHECK(supervisor.on(Woke{}, at(2s)).empty());
}

TEST_CASE("row 'nested': what does not stop when it is asked to is stopped a moment later") {
  Supervisor supervisor(1, {.hold_wait = 1s});
  supervisor.start(at(0s));
  supervisor.on(SignalReceived{SIGTSTP}, at(5s));
  CHECK(supervisor.on(Woke{}, at(5500ms)).empty());
  CHECK(supervisor.on(Woke{}, at(6s)) == Actions{Hold{}});
  CHECK(supervisor.on(Woke{}, at(7s)).empty());
}

TEST_CASE("row '--timeout, then Ctrl-Z': while the run is suspended its timeout stands still") {
  Supervisor supervisor(1, {.timeout = 10s});
  supervisor.start(at(0s));
  supervisor.on(SignalReceived{SIGTSTP}, at(4s));
  supervisor.on(Woke{}, at(5s));
  CHECK(supervisor.on(Woke{}, at(10s)).empty());
  CHECK(supervisor.on(SignalReceived{SIGCONT}, at(104s)) == Actions{Resume{0}, WakeAt{at(110s)}});
  CHECK(supervisor.on(Woke{}, at(109s)).empty());
  CHECK(supervisor.on(Woke{}, at(110s)) == Actions{WakeAt{at(120s)}, CallRoll{}});
}

TEST_CASE(
    "time in which somebody stopped the launcher itself moves every deadline, unless the clocks stand") {
  Supervisor supervisor(1, {.timeout = 10s});
  supervisor.start(at(0s));
  CHECK(supervisor.on(StoodStill{20s}, at(25s)) == Actions{WakeAt{at(30s)}});
  CHECK(supervisor.on(Woke{}, at(29s)).empty());
  supervisor.on(SignalReceived{SIGTSTP}, at(29s));
  CHECK(supervisor.on(StoodStill{50s}, at(80s)).empty());
  CHECK(supervisor.on(SignalReceived{SIGCONT}, at(80s)) == Actions{Resume{0}, WakeAt{at(81s)}});
  CHECK(supervisor.on(Woke{}, at(81s)) == Actions{WakeAt{at(91s)}, CallRoll{}});
  CHECK(supervisor.on(StoodStill{5s}, at(90s)) == Actions{WakeAt{at(86s)}, WakeAt{at(96s)}});
}

TEST_CASE("row '--early_exit_wait, then Ctrl-Z': it stands still, also for a rank that ended meanwhile") {
  for (const auto ended : {1s, 3s}) {
    Supervisor supervisor(2, {.early_exit_wait = 10s});
    supervisor.start(at(0s));
    if (ended < 2s) supervisor.on(exit_of(0, exited(0)), at(ended));
    supervisor.on(SignalReceived{SIGTSTP}, at(2s));
    if (ended > 2s) supervisor.on(exit_of(0, exited(0)), at(ended));
    CHECK(supervisor.on(Woke{}, at(90s)).size() == 1);  // Hold
    CHECK(supervisor.on(Woke{}, at(91s)).empty());
    const TimePoint due = at(ended < 2s ? 109s : 110s);
    CHECK(supervisor.on(SignalReceived{SIGCONT}, at(100s)) == Actions{Resume{1}, WakeAt{due}});
    CHECK(supervisor.on(Woke{}, due - 1s).empty());
    CHECK(supervisor.on(Woke{}, due).size() == 2);
    CHECK(supervisor.verdict().cause == Cause::early_exit);
  }
}

TEST_CASE("the grace of a run that is suspended while it stops stands still") {
  Supervisor supervisor(1, {.grace = 10s});
  supervisor.on(SignalReceived{SIGTERM}, at(0s));
  supervisor.on(SignalReceived{SIGTSTP}, at(4s));
  supervisor.on(Woke{}, at(5s));
  CHECK(supervisor.on(Woke{}, at(10s)).empty());
  CHECK(supervisor.on(SignalReceived{SIGCONT}, at(104s)) == Actions{Resume{0}, WakeAt{at(110s)}});
}

TEST_CASE("a suspended run can be asked to end, and its clocks go on then") {
  Supervisor supervisor(1, {.grace = 10s, .kill_wait = 30s});
  supervisor.start(at(0s));
  supervisor.on(SignalReceived{SIGTSTP}, at(1s));
  CHECK(supervisor.on(SignalReceived{SIGTERM}, at(5s)) == Actions{Terminate{0}, WakeAt{at(15s)}});
  supervisor.on(SignalReceived{SIGTSTP}, at(6s));
  CHECK(supervisor.on(SignalReceived{SIGTERM}, at(8s)) == Actions{Resume{0}, WakeAt{at(17s)}});
  supervisor.on(SignalReceived{SIGTSTP}, at(9s));
  CHECK(supervisor.on(FrontLost{}, at(10s)) == Actions{Resume{0}, WakeAt{at(18s)}});
}

TEST_CASE("a roll that was called before a suspension ends the run only after it") {
  Supervisor supervisor(1, {.grace = 5s, .roll_call_wait = 10s});
  supervisor.start(at(0s));
  supervisor.on(HangFound{"silence"}, at(60s));
  supervisor.on(SignalReceived{SIGTSTP}, at(61s));
  CHECK(supervisor.on(RollCalled{}, at(62s)).empty());
  CHECK(supervisor.on(SignalReceived{SIGCONT}, at(100s)) ==
        Actions{Resume{0}, WakeAt{at(109s)}, Terminate{0}, WakeAt{at(105s)}});
}

}  // namespace
}  // namespace fleetrun::launch::suspension_of_supervisor_test
