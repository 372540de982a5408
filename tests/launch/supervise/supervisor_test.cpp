#include "launch/supervise/supervisor.h"

#include <cerrno>
#include <chrono>
#include <csignal>

#include <doctest/doctest.h>

#include "launch/supervise/supervisor_events.h"

namespace fleetrun::launch::supervisor_test {
namespace {

using namespace std::chrono_literals;
using supervisor_events::at;
using supervisor_events::exit_of;
using supervisor_events::exited;
using supervisor_events::killed_by;

TEST_CASE("one failed worker stops the leaders of the rest, then their groups, then kills what is left") {
  Supervisor supervisor(3, {.grace = 10s, .group_grace = 1s, .kill_wait = 30s});
  CHECK(supervisor.start(at(0s)) == Actions{StartAttempt{0}});
  CHECK(supervisor.on(exit_of(1, exited(7)), at(0s)) == Actions{Terminate{0}, Terminate{2}, WakeAt{at(10s)}});
  CHECK(supervisor.on(Woke{}, at(10s)) == Actions{TerminateGroup{0}, TerminateGroup{2}, WakeAt{at(11s)}});
  CHECK(supervisor.on(Woke{}, at(11s)) == Actions{Kill{0}, Kill{2}, WakeAt{at(41s)}});
  supervisor.on(exit_of(0, killed_by(SIGKILL)), at(11s));
  CHECK_FALSE(supervisor.done());
  supervisor.on(exit_of(2, killed_by(SIGKILL)), at(11s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::exited);
  CHECK(supervisor.verdict().rank == 1);
  CHECK(supervisor.verdict().exit_code == 7);
}

TEST_CASE("a rank that was asked to end counts until what it leaves has ended, at most for the grace") {
  const WorkerExited wrapper = {.rank = 1, .status = killed_by(SIGTERM), .leaves_processes = true};
  Supervisor saves(2, {.grace = 10s});
  saves.on(exit_of(0, exited(7)), at(0s));
  CHECK(saves.on(wrapper, at(1s)).empty());
  CHECK_FALSE(saves.done());
  saves.on(LeftEnded{1}, at(3s));
  CHECK(saves.done());
  CHECK(saves.verdict().ranks[1].role == Role::stopped);

  Supervisor hangs(2, {.grace = 10s, .group_grace = 1s});
  hangs.on(exit_of(0, exited(7)), at(0s));
  hangs.on(wrapper, at(1s));
  CHECK(ranks_still_there(hangs.verdict()) == std::vector{1});
  CHECK(hangs.on(Woke{}, at(10s)) == Actions{TerminateGroup{1}, WakeAt{at(11s)}});
  hangs.on(Woke{}, at(11s));
  CHECK(hangs.done());
  CHECK(ranks_killed(hangs.verdict()) == std::vector{1});

  Supervisor both(2, {.grace = 10s, .group_grace = 1s, .kill_wait = 30s});
  both.on(SignalReceived{SIGTERM}, at(0s));
  both.on(wrapper, at(1s));
  CHECK(both.on(SignalReceived{SIGTSTP}, at(2s)) == Actions{Pause{0}, Pause{1}, WakeAt{at(3s)}});
  both.on(SignalReceived{SIGCONT}, at(2s));
  CHECK(both.on(Woke{}, at(10s)) == Actions{TerminateGroup{0}, TerminateGroup{1}, WakeAt{at(11s)}});
  CHECK(both.on(Woke{}, at(11s)) == Actions{Kill{0}, Kill{1}, WakeAt{at(41s)}});

  Supervisor hurried(1, {.grace = 10s});
  hurried.on(SignalReceived{SIGINT}, at(0s));
  hurried.on({WorkerExited{.rank = 0, .status = killed_by(SIGTERM), .leaves_processes = true}}, at(1s));
  hurried.on(SignalReceived{SIGINT}, at(2s));
  CHECK(hurried.done());
}

TEST_CASE("a signal to us right after a rank died of one is the cause: somebody signalled all processes") {
  Supervisor tree(3, {.grace = 10s, .restart = {.most = 3}});
  CHECK(tree.on(exit_of(1, killed_by(SIGTERM)), at(0s)) ==
        Actions{Terminate{0}, Terminate{2}, WakeAt{at(10s)}, WakeAt{at(100ms)}});
  CHECK(tree.verdict().cause == Cause::killed);
  CHECK(tree.on(SignalReceived{SIGTERM}, at(20ms)).empty());
  CHECK(tree.verdict().cause == Cause::stopped);
  CHECK_FALSE(tree.verdict().rank);
  CHECK(tree.verdict().ranks[1].role == Role::stopped);
  CHECK(tree.must_not_restart(at(20ms)));
  tree.on(exit_of(0, killed_by(SIGTERM)), at(1s));
  tree.on(exit_of(2, exited(143)), at(1s));
  CHECK(tree.done());
  CHECK(tree.verdict().exit_code == 143);

  Supervisor interrupted(1, {.grace = 10s});  // SIGINT during a stop would kill
  interrupted.on({WorkerExited{.rank = 0, .status = killed_by(SIGINT), .leaves_processes = true}}, at(0s));
  CHECK(interrupted.on(SignalReceived{SIGINT}, at(20ms)).empty());
  CHECK_FALSE(interrupted.done());
  interrupted.on(LeftEnded{0}, at(1s));
  CHECK(interrupted.done());
  CHECK(interrupted.verdict().exit_code == 130);
}

TEST_CASE("a rank that somebody else ended with a signal is the cause if no signal to us follows") {
  Supervisor alone(1, {.restart = {.most = 1, .first_delay = 1s}});
  CHECK(alone.on(exit_of(0, killed_by(SIGTERM)), at(0s)) == Actions{WakeAt{at(100ms)}});
  CHECK(alone.on(Woke{}, at(99ms)).empty());
  CHECK(alone.on(Woke{}, at(100ms)) == Actions{EndAttempt{1s}, WakeAt{at(1100ms)}});
  CHECK(alone.verdict().cause == Cause::killed);

  Supervisor later(2, {.grace = 10s});
  later.on(exit_of(0, exited(143)), at(0s));
  later.on(Woke{}, at(100ms));
  CHECK(later.on(SignalReceived{SIGTERM}, at(101ms)).empty());
  CHECK(later.verdict().rank == 0);

  Supervisor by_us(1, {});
  by_us.on({WorkerExited{.rank = 0, .status = killed_by(SIGTERM), .origin = "fleetrun passed on"}}, at(0s));
  CHECK(by_us.done());
}

TEST_CASE("SIGINT to all nodes is no second Ctrl-C here, but the next one is") {
  Supervisor supervisor(1, {.grace = 10s, .kill_wait = 30s});
  supervisor.on(EndedElsewhere{"stopped by SIGINT (2) on node 0", 130, false, SIGINT}, at(0s));
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(900ms)).empty());
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(1100ms)) == Actions{Kill{0}, WakeAt{at(31100ms)}});
}

TEST_CASE("what a rank leaves when somebody else ends it with a signal has the grace, too") {
  Supervisor supervisor(1, {.grace = 10s, .group_grace = 1s});
  CHECK(supervisor.on({WorkerExited{.rank = 0, .status = killed_by(SIGTERM), .leaves_processes = true}},
                      at(0s)) == Actions{WakeAt{at(10s)}, WakeAt{at(100ms)}});
  supervisor.on(Woke{}, at(100ms));
  CHECK(supervisor.on(Woke{}, at(10s)) == Actions{TerminateGroup{0}, WakeAt{at(11s)}});
  supervisor.on(LeftEnded{0}, at(10500ms));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::killed);
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
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(0s)) ==
        Actions{Terminate{0, SIGINT}, Terminate{1, SIGINT}, WakeAt{at(10s)}});
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(1s)) == Actions{Kill{0}, Kill{1}, WakeAt{at(31s)}});
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(2s)).empty());
  CHECK(supervisor.verdict().cause == Cause::stopped);
  CHECK(supervisor.verdict().exit_code == 130);
}

TEST_CASE("Ctrl-C is SIGINT for the ranks first, then SIGTERM for their groups, then SIGKILL") {
  Supervisor supervisor(1, {.grace = 10s, .group_grace = 500ms});
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(0s)) == Actions{Terminate{0, SIGINT}, WakeAt{at(10s)}});
  CHECK(supervisor.on(Woke{}, at(10s)) == Actions{TerminateGroup{0}, WakeAt{at(10500ms)}});
  CHECK(supervisor.on(Woke{}, at(10500ms)) == Actions{Kill{0}, WakeAt{at(40500ms)}});
}

TEST_CASE("a rank that ends by SIGINT, SIGTERM or SIGKILL after Ctrl-C has obeyed") {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL, SIGSEGV}) {
    Supervisor supervisor(1, {});
    supervisor.on(SignalReceived{SIGINT}, at(0s));
    supervisor.on(exit_of(0, {ExitStatus::How::signaled, signal}), at(1s));
    CHECK((supervisor.verdict().ranks[0].role == Role::stopped) == (signal != SIGSEGV));
  }
}

TEST_CASE("Ctrl-C on another node is SIGINT for the ranks here, too") {
  Supervisor supervisor(1, {.grace = 10s});
  CHECK(supervisor.on(EndedElsewhere{"stopped by SIGINT (2) on node 0", 130, false, SIGINT}, at(0s)) ==
        Actions{Terminate{0, SIGINT}, WakeAt{at(10s)}});
}

TEST_CASE("a second SIGTERM does not shorten the grace") {
  Supervisor supervisor(1, {.grace = 10s});
  supervisor.on(SignalReceived{SIGTERM}, at(0s));
  CHECK(supervisor.on(SignalReceived{SIGTERM}, at(1s)).empty());
  CHECK(supervisor.on(Woke{}, at(9s)).empty());
  CHECK(supervisor.verdict().exit_code == 143);
}

TEST_CASE(
    "Ctrl-C while a failure is being cleaned up leaves the ranks their grace, a second one kills them") {
  Supervisor supervisor(2, {.grace = 10s, .kill_wait = 1s, .restart = {.most = 3}});
  supervisor.on(exit_of(0, exited(3)), at(0s));
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(1s)).empty());
  CHECK(supervisor.must_not_restart(at(1s)));
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(2s)) == Actions{Kill{1}, WakeAt{at(3s)}});
  CHECK(supervisor.verdict().exit_code == 3);
  CHECK(supervisor.verdict().restart_stopped_by == SIGINT);
}

TEST_CASE("hunt 144: a signal that stops a restart is known, also while the ranks are killed") {
  Supervisor supervisor(2, {.grace = 1s, .group_grace = 1s, .kill_wait = 30s, .restart = {.most = 3}});
  supervisor.on(exit_of(0, exited(3)), at(0s));
  supervisor.on(Woke{}, at(1s));
  CHECK(supervisor.on(Woke{}, at(2s)) == Actions{Kill{1}, WakeAt{at(32s)}});
  CHECK(supervisor.verdict().restart_stopped_by == 0);
  supervisor.on(SignalReceived{SIGTERM}, at(3s));
  CHECK(supervisor.verdict().restart_stopped_by == SIGTERM);
}

TEST_CASE("without the front process everything is killed at once") {
  Supervisor supervisor(2, {.kill_wait = 30s});
  supervisor.on(exit_of(0, exited(0)), at(0s));
  CHECK(supervisor.on(FrontLost{}, at(1s)) == Actions{Kill{1}, WakeAt{at(31s)}});
  CHECK(supervisor.verdict().cause == Cause::front_lost);
  CHECK(supervisor.verdict().exit_code == 137);
}

TEST_CASE(
    "hunt 19: if the front process is killed during a stop, the ranks keep their grace, and nothing restarts") {
  Supervisor supervisor(1, {.grace = 10s, .kill_wait = 1s, .restart = {.most = 3}});
  supervisor.on(SignalReceived{SIGINT}, at(0s));
  CHECK(supervisor.on(FrontLost{}, at(1s)).empty());
  CHECK(supervisor.must_not_restart(at(1s)));
  CHECK_FALSE(supervisor.done());
  supervisor.on(exit_of(0, exited(0)), at(3s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().cause == Cause::stopped);
}

TEST_CASE("the wait after SIGKILL has an end, too") {
  Supervisor supervisor(1, {.grace = 1s, .group_grace = 1s, .kill_wait = 30s});
  supervisor.on(SignalReceived{SIGTERM}, at(0s));
  supervisor.on(Woke{}, at(1s));
  supervisor.on(Woke{}, at(2s));
  CHECK(supervisor.on(Woke{}, at(31s)).empty());
  CHECK_FALSE(supervisor.done());
  supervisor.on(Woke{}, at(32s));
  CHECK(supervisor.done());
  CHECK(supervisor.verdict().ranks[0].role == Role::running);
}

TEST_CASE("a wake-up of a stop that is over changes nothing") {
  Supervisor supervisor(1, {.grace = 1s});
  CHECK(supervisor.on(Woke{}, at(5s)).empty());
  supervisor.on(exit_of(0, exited(0)), at(6s));
  CHECK(supervisor.on(SignalReceived{SIGINT}, at(7s)).empty());
  CHECK(supervisor.verdict().exit_code == 0);
}

TEST_CASE("a hang calls the roll before anything is stopped") {
  Supervisor supervisor(2, {.grace = 5s, .roll_call_wait = 10s});
  supervisor.start(at(0s));
  CHECK(supervisor.on(HangFound{"silence"}, at(60s)) == Actions{WakeAt{at(70s)}, CallRoll{}});
  CHECK(supervisor.on(RollCalled{}, at(61s)) == Actions{Terminate{0}, Terminate{1}, WakeAt{at(66s)}});
  CHECK(supervisor.verdict().cause == Cause::hung);
  CHECK(supervisor.verdict().why == "silence");
  CHECK(supervisor.verdict().exit_code == 75);
}

TEST_CASE("a roll call that does not end holds nothing up") {
  Supervisor supervisor(1, {.grace = 5s, .roll_call_wait = 10s});
  supervisor.start(at(0s));
  supervisor.on(HangFound{"silence"}, at(60s));
  CHECK(supervisor.on(Woke{}, at(69s)).empty());
  CHECK(supervisor.on(Woke{}, at(70s)) == Actions{Terminate{0}, WakeAt{at(75s)}});
}

TEST_CASE("ranks that end while the roll is called do not end the run twice") {
  Supervisor supervisor(1, {.restart = {.most = 1, .first_delay = 1s}});
  supervisor.start(at(0s));
  supervisor.on(HangFound{"silence"}, at(60s));
  CHECK(supervisor.on(exit_of(0, exited(0)), at(61s)).empty());
  CHECK_FALSE(supervisor.done());
  CHECK(supervisor.on(RollCalled{}, at(62s)) == Actions{EndAttempt{1s}, WakeAt{at(63s)}});
}

TEST_CASE("SIGQUIT calls the roll and stops nothing") {
  Supervisor supervisor(1, {});
  supervisor.start(at(0s));
  CHECK(supervisor.on(SignalReceived{SIGQUIT}, at(1s)) == Actions{CallRoll{}});
  CHECK(supervisor.on(RollCalled{}, at(2s)).empty());
  CHECK(supervisor.verdict().cause == Cause::finished);
}

TEST_CASE("a run that takes longer than its timeout is stopped with 124") {
  Supervisor supervisor(1, {.grace = 1s, .timeout = 10s});
  CHECK(supervisor.start(at(5s)) == Actions{WakeAt{at(15s)}, StartAttempt{0}});
  CHECK(supervisor.on(Woke{}, at(14s)).empty());
  CHECK(supervisor.on(Woke{}, at(15s)) == Actions{WakeAt{at(25s)}, CallRoll{}});
  CHECK(supervisor.verdict().cause == Cause::timed_out);
  CHECK(supervisor.verdict().why == "--timeout: 10 s have passed");
  CHECK(supervisor.verdict().exit_code == 124);
}

TEST_CASE("ranks that run on long after another has finished are an error where that was asked for") {
  Supervisor supervisor(3, {.early_exit_wait = 60s});
  supervisor.start(at(0s));
  CHECK(supervisor.on(exit_of(2, exited(0)), at(10s)) == Actions{WakeAt{at(70s)}});
  CHECK(supervisor.on(exit_of(0, exited(0)), at(20s)).empty());
  CHECK(supervisor.on(Woke{}, at(69s)).empty());
  CHECK(supervisor.on(Woke{}, at(70s)) == Actions{WakeAt{at(80s)}, CallRoll{}});
  CHECK(supervisor.verdict().cause == Cause::early_exit);
  CHECK(supervisor.verdict().rank == 2);
  CHECK(supervisor.verdict().why == "rank 2 finished 60 s ago and others still run");
}

TEST_CASE("USR1 and USR2 are the workers', not ours") {
  Supervisor supervisor(2, {});
  supervisor.start(at(0s));
  supervisor.on(exit_of(0, exited(0)), at(1s));
  CHECK(supervisor.on(SignalReceived{SIGUSR1}, at(1s)) == Actions{PassOn{1, SIGUSR1}});
  CHECK(supervisor.on(SignalReceived{SIGUSR2}, at(1s)) == Actions{PassOn{1, SIGUSR2}});
}

TEST_CASE("a signal that was chosen to end the run is what the workers get") {
  Supervisor supervisor(2, {.stop_signals = {SIGTERM, SIGUSR1}, .grace = 10s});
  supervisor.start(at(0s));
  CHECK(supervisor.on(SignalReceived{SIGUSR2}, at(1s)) == Actions{PassOn{0, SIGUSR2}, PassOn{1, SIGUSR2}});
  CHECK(supervisor.on(SignalReceived{SIGUSR1}, at(2s)) ==
        Actions{Terminate{0, SIGUSR1}, Terminate{1, SIGUSR1}, WakeAt{at(12s)}});
  supervisor.on(exit_of(0, {ExitStatus::How::signaled, SIGUSR1}), at(3s));
  CHECK(supervisor.verdict().ranks[0].role == Role::stopped);
  CHECK(supervisor.verdict().cause == Cause::stopped);
  CHECK(supervisor.verdict().exit_code == 128 + SIGUSR1);
}

TEST_CASE("SIGTERM ends a run as it always does, also when it was chosen") {
  Supervisor supervisor(1, {.stop_signals = {SIGTERM}, .grace = 10s});
  supervisor.start(at(0s));
  CHECK(supervisor.on(SignalReceived{SIGTERM}, at(2s)) == Actions{Terminate{0}, WakeAt{at(12s)}});
}

TEST_CASE("a hang of all nodes calls the roll here, too, before the ranks are stopped") {
  Supervisor supervisor(1, {.grace = 10s, .roll_call_wait = 10s});
  CHECK(supervisor.on(EndedElsewhere{"silence", 75, true}, at(60s)) == Actions{WakeAt{at(70s)}, CallRoll{}});
  CHECK(supervisor.verdict().cause == Cause::elsewhere);
  CHECK(supervisor.verdict().exit_code == 75);
  CHECK(supervisor.on(RollCalled{}, at(61s)) == Actions{Terminate{0}, WakeAt{at(71s)}});
}

TEST_CASE("a hang that this node finds at the same time as another one calls the roll once") {
  Supervisor supervisor(1, {});
  supervisor.on(HangFound{"silence"}, at(60s));
  CHECK(supervisor.on(EndedElsewhere{"silence", 75, true}, at(60s)).empty());
  CHECK(supervisor.verdict().cause == Cause::hung);
}

TEST_CASE("a failure elsewhere does not wait for the roll") {
  Supervisor supervisor(1, {.grace = 10s});
  supervisor.on(HangFound{"silence"}, at(60s));
  CHECK(supervisor.on(EndedElsewhere{"rank 5 exited with code 3", 3}, at(61s)) ==
        Actions{Terminate{0}, WakeAt{at(71s)}});
}

TEST_CASE("Ctrl-Z, SIGCONT and SIGUSR1 of another node do here what they do there") {
  Supervisor supervisor(1, {.hold_wait = 1s, .timeout = 100s});
  supervisor.start(at(0s));
  CHECK(supervisor.on(SignalElsewhere{SIGTSTP}, at(10s)) == Actions{Pause{0}, WakeAt{at(11s)}});
  CHECK(supervisor.suspended());
  CHECK(supervisor.on(SignalElsewhere{SIGCONT}, at(30s)) == Actions{Resume{0}, WakeAt{at(120s)}});
  CHECK_FALSE(supervisor.suspended());
  CHECK(supervisor.on(SignalElsewhere{SIGUSR1}, at(31s)) == Actions{PassOn{0, SIGUSR1}});
  CHECK(supervisor.on(SignalElsewhere{SIGQUIT}, at(32s)) == Actions{CallRoll{}});
  CHECK(supervisor.on(SignalElsewhere{SIGTERM}, at(33s)).empty());  // that comes as EndedElsewhere
}

TEST_CASE("a rank that finished elsewhere starts the early exit's clock of the ranks here") {
  Supervisor supervisor(1, {.early_exit_wait = 5s});
  CHECK(supervisor.on(FinishedElsewhere{7}, at(1s)) == Actions{WakeAt{at(6s)}});
  CHECK(supervisor.on(FinishedElsewhere{9}, at(2s)).empty());
  CHECK_FALSE(supervisor.on(Woke{}, at(6s)).empty());
  CHECK(supervisor.verdict().cause == Cause::early_exit);
  CHECK(supervisor.verdict().why == "rank 7 finished 5 s ago and others still run");
  CHECK_FALSE(supervisor.verdict().rank);
}

TEST_CASE("without --early_exit_wait a rank that finished elsewhere changes nothing") {
  Supervisor supervisor(1, {});
  CHECK(supervisor.on(FinishedElsewhere{7}, at(1s)).empty());
}

}  // namespace
}  // namespace fleetrun::launch::supervisor_test
