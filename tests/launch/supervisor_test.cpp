#include "launch/supervisor.h"

#include <cerrno>
#include <chrono>
#include <csignal>

#include <doctest/doctest.h>

namespace fleetrun::launch {
namespace {

using namespace std::chrono_literals;

TimePoint at(Clock::duration time) { return TimePoint(time); }
ExitStatus exited(int code) { return {ExitStatus::How::exited, code}; }
ExitStatus killed_by(int signal) { return {ExitStatus::How::signaled, signal}; }
WorkerExited exit_of(int rank, ExitStatus status) { return {.rank = rank, .status = status}; }

TEST_CASE("one failed worker stops the rest, then kills what is left") {
  Supervisor supervisor(3, {.grace = 10s, .kill_wait = 30s});
  CHECK(supervisor.on(exit_of(1, exited(7)), at(0s)) == Actions{Terminate{0}, Terminate{2}, WakeAt{at(10s)}});
  CHECK(supervisor.on(Woke{}, at(10s)) == Actions{Kill{0}, Kill{2}, WakeAt{at(40s)}});
  supervisor.on(exit_of(0, killed_by(SIGKILL)), at(10s));
  CHECK_FALSE(supervisor.done());
  supervisor.on(exit_of(2, killed_by(SIGKILL)), at(10s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::exited);
  CHECK(supervisor.verdict().rank == 1);
  CHECK(supervisor.verdict().exit_code == 7);
}

TEST_CASE("the run is done when every rank has ended with 0") {
  Supervisor supervisor(2, {});
  CHECK(supervisor.on(exit_of(1, exited(0)), at(1s)).empty());
  CHECK_FALSE(supervisor.done());
  CHECK(supervisor.on(exit_of(0, exited(0)), at(9s)).empty());
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::finished);
  CHECK(supervisor.verdict().exit_code == 0);
}

TEST_CASE("a worker that dies of a signal gives 128 and the signal's number") {
  Supervisor supervisor(1, {});
  CHECK(supervisor.on(exit_of(0, killed_by(SIGSEGV)), at(1s)).empty());
  CHECK(supervisor.verdict().cause == Cause::killed);
  CHECK(supervisor.verdict().exit_code == 139);
}

TEST_CASE("the first failure is the cause, later ones are consequences") {
  Supervisor supervisor(4, {.grace = 10s});
  supervisor.on(exit_of(3, exited(0)), at(1s));
  supervisor.on(exit_of(2, exited(5)), at(2s));
  supervisor.on(exit_of(0, exited(9)), at(2s));
  supervisor.on(exit_of(1, killed_by(SIGTERM)), at(3s));
  const Verdict& verdict = supervisor.verdict();
  CHECK(verdict.exit_code == 5);
  CHECK(verdict.ranks[0].role == Role::failed_after);
  CHECK(verdict.ranks[1].role == Role::stopped);
  CHECK(verdict.ranks[2].role == Role::cause);
  CHECK(verdict.ranks[3].role == Role::finished);
  CHECK(verdict.ranks[2].ended == at(2s));
}

TEST_CASE("a rank that cannot be started stops those before it and never starts those after it") {
  Supervisor supervisor(3, {.grace = 1s});
  CHECK(supervisor.on(SpawnFailed{1, EAGAIN}, at(0s)) == Actions{Terminate{0}, WakeAt{at(1s)}});
  CHECK_FALSE(supervisor.done());
  supervisor.on(exit_of(0, killed_by(SIGTERM)), at(0s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::spawn);
  CHECK(supervisor.verdict().exit_code == 71);
  CHECK(supervisor.verdict().ranks[2].role == Role::never_started);
}

TEST_CASE("why the first rank cannot be started decides the exit code") {
  const auto code_for = [](int error) {
    Supervisor supervisor(2, {});
    CHECK(supervisor.on(SpawnFailed{0, error}, at(0s)).empty());
    CHECK(supervisor.done());
    return supervisor.verdict().exit_code;
  };
  CHECK(code_for(ENOENT) == 127);
  CHECK(code_for(EACCES) == 126);
  CHECK(code_for(ENOEXEC) == 126);
  CHECK(code_for(ENOMEM) == 71);
}

TEST_CASE("Ctrl-C stops politely, a second one kills at once") {
  Supervisor supervisor(2, {.grace = 10s, .kill_wait = 30s});
  CHECK(supervisor.on(StopRequested{SIGINT}, at(0s)) == Actions{Terminate{0}, Terminate{1}, WakeAt{at(10s)}});
  CHECK(supervisor.on(StopRequested{SIGINT}, at(1s)) == Actions{Kill{0}, Kill{1}, WakeAt{at(31s)}});
  CHECK(supervisor.on(StopRequested{SIGINT}, at(2s)).empty());
  CHECK(supervisor.verdict().cause == Cause::stopped);
  CHECK(supervisor.verdict().exit_code == 130);
}

TEST_CASE("a second SIGTERM does not shorten the grace") {
  Supervisor supervisor(1, {.grace = 10s});
  supervisor.on(StopRequested{SIGTERM}, at(0s));
  CHECK(supervisor.on(StopRequested{SIGTERM}, at(1s)).empty());
  CHECK(supervisor.on(Woke{}, at(9s)).empty());
  CHECK(supervisor.verdict().exit_code == 143);
}

TEST_CASE("Ctrl-C while a failure is being cleaned up kills, and the failure stays the cause") {
  Supervisor supervisor(2, {.grace = 10s, .kill_wait = 1s});
  supervisor.on(exit_of(0, exited(3)), at(0s));
  CHECK(supervisor.on(StopRequested{SIGINT}, at(1s)) == Actions{Kill{1}, WakeAt{at(2s)}});
  CHECK(supervisor.verdict().exit_code == 3);
}

TEST_CASE("without the front process everything is killed at once") {
  Supervisor supervisor(2, {.kill_wait = 30s});
  supervisor.on(exit_of(0, exited(0)), at(0s));
  CHECK(supervisor.on(FrontLost{}, at(1s)) == Actions{Kill{1}, WakeAt{at(31s)}});
  CHECK(supervisor.verdict().cause == Cause::front_lost);
  CHECK(supervisor.verdict().exit_code == 137);
}

TEST_CASE("the wait after SIGKILL has an end, too") {
  Supervisor supervisor(1, {.grace = 1s, .kill_wait = 30s});
  supervisor.on(StopRequested{SIGTERM}, at(0s));
  supervisor.on(Woke{}, at(1s));
  CHECK(supervisor.on(Woke{}, at(30s)).empty());
  CHECK_FALSE(supervisor.done());
  supervisor.on(Woke{}, at(31s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().ranks[0].role == Role::running);
}

TEST_CASE("a wake-up of a stop that is over changes nothing") {
  Supervisor supervisor(1, {.grace = 1s});
  CHECK(supervisor.on(Woke{}, at(5s)).empty());
  supervisor.on(exit_of(0, exited(0)), at(6s));
  CHECK(supervisor.on(StopRequested{SIGINT}, at(7s)).empty());
  CHECK(supervisor.verdict().exit_code == 0);
}

}  // namespace
}  // namespace fleetrun::launch
