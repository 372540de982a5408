// What the Supervisor does between two attempts.
#include "launch/supervise/supervisor.h"

#include <chrono>
#include <csignal>

#include <doctest/doctest.h>

#include "launch/supervise/supervisor_events.h"

namespace fleetrun::launch::restarts_of_supervisor_test {
namespace {

using namespace std::chrono_literals;
using supervisor_events::at;
using supervisor_events::exit_of;
using supervisor_events::exited;
using supervisor_events::killed_by;

TEST_CASE("a failed attempt is cleared away and followed by another one after a pause") {
  Supervisor supervisor(2, {.grace = 10s, .restart = {.most = 2, .first_delay = 1s}});
  supervisor.start(at(0s));
  CHECK(supervisor.on(exit_of(1, exited(1)), at(5s)) == Actions{Terminate{0}, WakeAt{at(15s)}});
  CHECK(supervisor.on(exit_of(0, killed_by(SIGTERM)), at(6s)) == Actions{EndAttempt{1s}, WakeAt{at(7s)}});
  CHECK(supervisor.verdict().rank == 1);
  CHECK(supervisor.on(Woke{}, at(7s)) == Actions{StartAttempt{1}});
  CHECK_FALSE(supervisor.verdict().rank);
  CHECK(supervisor.verdict().ranks[1].role == Role::running);
  supervisor.on(exit_of(0, exited(0)), at(8s));
  supervisor.on(exit_of(1, exited(0)), at(8s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().exit_code == 0);
  CHECK(supervisor.verdict().attempt == 1);
}

TEST_CASE("an attempt that fails like those before is a crash loop in the end") {
  Supervisor supervisor(1, {.restart = {.most = 1, .first_delay = 1s}});
  supervisor.start(at(0s));
  CHECK(supervisor.on(exit_of(0, exited(1)), at(1s)) == Actions{EndAttempt{1s}, WakeAt{at(2s)}});
  CHECK(supervisor.on(Woke{}, at(2s)) == Actions{StartAttempt{1}});
  CHECK(supervisor.on(exit_of(0, exited(1)), at(3s)).empty());
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().crash_loop);
  CHECK(supervisor.verdict().exit_code == 93);
}

TEST_CASE("an attempt of seconds with a new step is no part of a crash loop") {
  Supervisor supervisor(1, {.restart = {.most = 1, .first_delay = 1s}});
  supervisor.start(at(0s));
  supervisor.saw_step(3);
  supervisor.on(exit_of(0, exited(1)), at(1s));
  CHECK(supervisor.on(Woke{}, at(2s)) == Actions{StartAttempt{1}});
  supervisor.saw_step(4);
  supervisor.on(exit_of(0, exited(1)), at(3s));
  CHECK(supervisor.done());
  CHECK_FALSE(supervisor.verdict().crash_loop);
  CHECK(supervisor.verdict().exit_code == 1);
}

TEST_CASE(
    "a run that is asked to end in the pause before a restart was stopped: the failure is that of an attempt") {
  for (const int signal : {SIGTERM, SIGINT}) {
    Supervisor supervisor(2, {.restart = {.most = 3, .first_delay = 10s}});
    supervisor.start(at(0s));
    supervisor.on(exit_of(0, exited(4)), at(1s));
    supervisor.on(exit_of(1, killed_by(SIGTERM)), at(1s));
    CHECK(supervisor.on(SignalReceived{signal}, at(2s)).empty());
    CHECK(supervisor.done());
    CHECK(supervisor.verdict().cause == Cause::stopped);
    CHECK(supervisor.verdict().signal == signal);
    CHECK(supervisor.verdict().exit_code == 128 + signal);
    CHECK_FALSE(supervisor.verdict().rank);
    CHECK(supervisor.verdict().ranks[0].status == exited(4));
  }
}

TEST_CASE("a suspended run that is asked to end in the pause before a restart ends at once") {
  Supervisor supervisor(1, {.restart = {.most = 3, .first_delay = 10s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(4)), at(1s));
  supervisor.on(SignalReceived{SIGTSTP}, at(2s));
  CHECK(supervisor.on(SignalReceived{SIGTERM}, at(3s)).empty());
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().exit_code == 143);
}

TEST_CASE("without the front process no restart is waited for") {
  Supervisor supervisor(1, {.restart = {.most = 3, .first_delay = 10s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(4)), at(1s));
  CHECK(supervisor.on(FrontLost{}, at(2s)).empty());
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::front_lost);
  CHECK(supervisor.verdict().exit_code == 137);
}

TEST_CASE("a run that was told to end is not started again") {
  Supervisor supervisor(1, {.grace = 1s, .restart = {.most = 3}});
  supervisor.start(at(0s));
  supervisor.on(SignalReceived{SIGTERM}, at(1s));
  CHECK(supervisor.on(exit_of(0, exited(1)), at(2s)).empty());
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().exit_code == 143);
}

TEST_CASE("the timeout is one of all attempts together") {
  Supervisor supervisor(1, {.timeout = 10s, .restart = {.most = 1, .first_delay = 1s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(8s));
  CHECK(supervisor.on(Woke{}, at(9s)) == Actions{WakeAt{at(10s)}, StartAttempt{1}});
  supervisor.on(Woke{}, at(10s));
  CHECK(supervisor.verdict().cause == Cause::timed_out);
}

TEST_CASE("the timeout ends the pause before a restart, too") {
  Supervisor supervisor(1, {.timeout = 10s, .restart = {.most = 2, .first_delay = 30s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(8s));
  CHECK(supervisor.on(Woke{}, at(9s)).empty());
  CHECK_FALSE(supervisor.done());
  CHECK(supervisor.on(Woke{}, at(10s)).empty());
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::timed_out);
  CHECK(supervisor.verdict().exit_code == 124);
  CHECK_FALSE(supervisor.verdict().rank);
}

TEST_CASE(
    "a timeout that passes while ranks are being stopped ends the pause before a restart at its start") {
  Supervisor supervisor(2, {.grace = 30s, .timeout = 10s, .restart = {.most = 2, .first_delay = 30s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(8s));
  CHECK(supervisor.on(Woke{}, at(10s)).empty());
  CHECK(supervisor.on(exit_of(1, exited(0)), at(12s)) ==
        Actions{EndAttempt{30s}, WakeAt{at(10s)}, WakeAt{at(42s)}});
  supervisor.on(Woke{}, at(12s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::timed_out);
}

TEST_CASE("a signal that was chosen to end the run does so in the pause before a restart, too") {
  Supervisor supervisor(1, {.stop_signals = {SIGUSR1}, .restart = {.most = 2, .first_delay = 30s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(8s));
  supervisor.on(SignalReceived{SIGUSR2}, at(9s));
  CHECK_FALSE(supervisor.done());
  supervisor.on(SignalReceived{SIGUSR1}, at(9s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::stopped);
  CHECK(supervisor.verdict().signal == SIGUSR1);

  Supervisor of_a_node(1, {.stop_signals = {SIGUSR1}});
  of_a_node.start(at(0s));
  of_a_node.on(exit_of(0, exited(1)), at(8s));
  CHECK_FALSE(of_a_node.end_between_attempts(SignalReceived{SIGUSR2}, at(9s)));
  CHECK(of_a_node.end_between_attempts(SignalReceived{SIGUSR1}, at(9s))->signal == SIGUSR1);
}

TEST_CASE("a chosen signal forbids the restart when it comes while ranks are being stopped") {
  Supervisor supervisor(2,
                        {.stop_signals = {SIGUSR1}, .grace = 30s, .restart = {.most = 2, .first_delay = 1s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(8s));
  supervisor.on(SignalReceived{SIGUSR1}, at(9s));
  CHECK(supervisor.on(exit_of(1, exited(0)), at(10s)).empty());
  CHECK(supervisor.done());
}

TEST_CASE("between two attempts of several nodes the timeout ends the run, and Ctrl-Z puts it off") {
  Supervisor supervisor(1, {.timeout = 10s});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(1s));
  CHECK_FALSE(supervisor.end_between_attempts(SignalElsewhere{SIGTSTP}, at(2s)));
  CHECK_FALSE(supervisor.end_between_attempts(Woke{}, at(10s)));
  CHECK_FALSE(supervisor.end_between_attempts(SignalElsewhere{SIGCONT}, at(32s)));
  CHECK(supervisor.timeout() == at(40s));
  CHECK_FALSE(supervisor.end_between_attempts(Woke{}, at(39s)));
  const auto end = supervisor.end_between_attempts(Woke{}, at(40s));
  REQUIRE(end);
  CHECK(end->cause == Cause::timed_out);
  CHECK(end->exit_code == 124);
  CHECK(end->why == "--timeout: 10 s have passed");
}

TEST_CASE(
    "between two attempts of several nodes a signal to this node ends the run, not one to another node") {
  Supervisor supervisor(1, {});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(1s));
  CHECK_FALSE(supervisor.end_between_attempts(SignalElsewhere{SIGTERM}, at(2s)));
  CHECK_FALSE(supervisor.end_between_attempts(SignalReceived{SIGUSR1}, at(2s)));
  const auto end = supervisor.end_between_attempts(SignalReceived{SIGTERM}, at(2s));
  REQUIRE(end);
  CHECK(end->cause == Cause::stopped);
  CHECK(end->signal == SIGTERM);
  CHECK(end->exit_code == 143);
}

TEST_CASE("row '--restart_delay, Ctrl-Z in the pause': the next attempt waits until the run goes on") {
  Supervisor supervisor(1, {.restart = {.most = 1, .first_delay = 3s}});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(1)), at(1s));
  CHECK(supervisor.on(SignalReceived{SIGTSTP}, at(2s)).empty());
  CHECK(supervisor.on(Woke{}, at(4s)).empty());
  CHECK(supervisor.on(SignalReceived{SIGCONT}, at(50s)) == Actions{WakeAt{at(52s)}});
  CHECK(supervisor.on(Woke{}, at(52s)) == Actions{StartAttempt{1}});
}

TEST_CASE("a rank that fails while the run is suspended ends the attempt, and the next one waits") {
  Supervisor supervisor(2, {.grace = 10s, .restart = {.most = 1, .first_delay = 1s}});
  supervisor.start(at(0s));
  supervisor.on(SignalReceived{SIGTSTP}, at(1s));
  CHECK(supervisor.on(exit_of(0, killed_by(SIGKILL)), at(2s)) == Actions{Terminate{1}, WakeAt{at(12s)}});
  CHECK(supervisor.on(Woke{}, at(12s)).size() == 2);  // the grace runs: rank 1 does
  supervisor.on(exit_of(1, exited(0)), at(12s));
  CHECK(supervisor.on(Woke{}, at(30s)).empty());
  CHECK(supervisor.on(SignalReceived{SIGCONT}, at(100s)) == Actions{WakeAt{at(101s)}});
}

}  // namespace
}  // namespace fleetrun::launch::restarts_of_supervisor_test
