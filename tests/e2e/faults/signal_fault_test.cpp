// L3 to L10 and L20: signals to the launcher.
#include "e2e/faults/faults.h"

namespace fleetrun::signal_fault_test {
namespace {

TEST_CASE("L3: SIGTERM is a polite stop with 143, and the ranks may write a checkpoint") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command({"--nproc_per_node=2"},
                            "trap 'echo saved > checkpoint.$RANK; exit 0' TERM\n$FAKE ready up.$RANK\n"
                            "while :; do sleep 0.02; done\n"),
      launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(contains(result.err, "fleetrun: stopped by SIGTERM (15), waiting for the ranks to end"));
  CHECK(launch.folder.read("checkpoint.0") == "saved\n");
  CHECK(launch.folder.read("checkpoint.1") == "saved\n");
  CHECK(launch.report()["cause"] == "stopped");
  CHECK(launch.report()["stop_signal"] == SIGTERM);
}

TEST_CASE("L4: SIGINT once is a polite stop with 130 that says how to end at once") {
  const Launch launch;
  ChildProcess process(
      Launch::command({"--nproc_per_node=2"}, {"on-term", "0", "ready", "up.%r", "sleep", "100"}),
      launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  process.send(SIGINT);
  const ChildResult result = process.wait();
  CHECK(result.code == 130);
  CHECK(contains(result.err,
                 "fleetrun: stopped by SIGINT (2), waiting for the ranks to end; Ctrl-C kills them now\n"));
}

TEST_CASE("L5: SIGINT twice kills at once, with 130") {
  const Launch launch;
  ChildProcess process(Launch::command({}, {"ignore-term", "pid", "pid", "sleep", "100"}), launch.options());
  const pid_t worker = launch.pid_in("pid");
  process.send(SIGINT);
  CHECK_FALSE(comes_true([&] { return !is_alive(worker); }, 200ms));
  process.send(SIGINT);
  const auto start = std::chrono::steady_clock::now();
  CHECK(process.wait().code == 130);
  CHECK(std::chrono::steady_clock::now() - start < within(1s));
  CHECK_FALSE(is_alive(worker));
}

TEST_CASE("L6: SIGHUP ends the run like SIGTERM, with 129, and nothing stays") {
  const Launch launch;
  ChildProcess process(Launch::command({}, {"daemon", "daemon", "pid", "pid", "sleep", "100"}),
                       launch.options());
  const pid_t worker = launch.pid_in("pid"), daemon = launch.pid_in("daemon");
  process.send(SIGHUP);
  CHECK(process.wait().code == 129);
  CHECK_FALSE(is_alive(worker));
  CHECK_FALSE(is_alive(daemon));
}

TEST_CASE("L7: under nohup a run survives SIGHUP") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.ignore_hangup = true;
  ChildProcess process(Launch::command({}, {"signals", "ready", "up", "sleep", "0.3"}), options);
  launch.pid_in("up");
  process.send(SIGHUP);
  CHECK(process.wait().code == 0);
  CHECK(launch.folder.read("log/workerlog.0") == "ignored 1\n");
}

TEST_CASE(
    "L8: Ctrl-Z stops all ranks with their helpers, and they go on; no clock of a hang runs meanwhile") {
  const Launch launch;
  ChildProcess process(Launch::command({"--nproc_per_node=2", "--hang_timeout=0.6"},
                                       {"pid", "pid.%r", "sleep", "0.3", "exit", "0"}),
                       launch.options());
  const pid_t first = launch.pid_in("pid.0"), second = launch.pid_in("pid.1");
  process.send(SIGTSTP);
  const auto all_are = [&](bool stopped) {
    return comes_true(
        [&] {
          return (state_of(first) == 'T') == stopped && (state_of(second) == 'T') == stopped &&
                 (state_of(process.pid()) == 'T') == stopped;
        },
        within(1s));
  };
  CHECK(all_are(true));
  CHECK_FALSE(comes_true([&] { return state_of(first) != 'T'; }, 900ms));  // longer than the hang's time
  process.send(SIGCONT);
  CHECK(process.wait().code == 0);
}

TEST_CASE("L9: SIGQUIT says what the ranks are doing, with stacks where there is a debugger, and goes on") {
  const Launch launch;
  std::filesystem::create_directory(launch.folder / "tools");
  launch.folder.write("tools/gdb", "#!/bin/sh\necho \"stack of $4\"\n");
  std::filesystem::permissions(launch.folder / "tools/gdb", std::filesystem::perms::owner_all);
  ChildOptions options = launch.options();
  options.environment["PATH"] = launch.folder / "tools" + ":" + std::getenv("PATH");
  ChildProcess process(
      Launch::command({"--nproc_per_node=2"}, {"print", "epoch 1", "pid", "pid.%r", "sleep", "0.4"}),
      options);
  const pid_t worker = launch.pid_in("pid.1");
  launch.pid_in("pid.0");
  process.send(SIGQUIT);
  const ChildResult result = process.wait();
  CHECK(result.code == 0);
  CHECK(contains(result.err, "fleetrun: what the ranks are doing:\n    rank 0  pid "));
  CHECK(contains(result.err, "  last line: epoch 1\n"));
  CHECK(launch.folder.read("log/stacks.1") == "stack of " + std::to_string(worker) + "\n");
  CHECK(launch.report()["roll_call"].size() >= 2);
}

TEST_CASE("L10: SIGUSR1 and SIGUSR2 are passed on to the ranks that handle them, and end none") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command({"--nproc_per_node=2"},
                            "[ $RANK = 0 ] && exec $FAKE ready up.0 sleep 0.5\n"
                            "exec $FAKE on-usr1 'checkpoint now' ready up.1 sleep 0.25 sleep 0.25\n"),
      launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  process.send(SIGUSR1);
  process.send(SIGUSR2);
  const ChildResult result = process.wait();
  CHECK(result.code == 0);
  CHECK(contains(launch.folder.read("log/workerlog.1"), "checkpoint now"));
  CHECK(contains(result.err, "fleetrun: SIGUSR1 (10) was not passed on to rank 0, which it would end\n"));
}

TEST_CASE("L20: a launcher that was stopped for a while ends nobody when it goes on") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command({"--nproc_per_node=2", "--hang_timeout=0.5"},
                            "echo $PPID > middle.new.$RANK; mv middle.new.$RANK middle.$RANK\n"
                            "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.15; done\n"),
      launch.options());
  const pid_t middle = launch.pid_in("middle.0");
  ::kill(middle, SIGSTOP);
  process.send(SIGSTOP);
  CHECK_FALSE(comes_true([] { return false; }, 800ms));
  process.send(SIGCONT);
  ::kill(middle, SIGCONT);
  CHECK(process.wait().code == 0);
}

}  // namespace
}  // namespace fleetrun::signal_fault_test
