// L3 to L10 and L20: signals to the launcher.
#include <thread>

#include "e2e/faults/faults.h"
#include "e2e/faults/terminal_child.h"

namespace fleetrun::signal_fault_test {
namespace {

constexpr char kCtrlC = 3, kCtrlZ = 26;
constexpr auto kSameSignal = 1s;  // in which a repeated signal is one, unless it is a key press

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
  CHECK_FALSE(comes_true([&] { return !is_alive(worker); }, kSameSignal + 100ms));
  process.send(SIGINT);
  const auto start = std::chrono::steady_clock::now();
  CHECK(process.wait().code == 130);
  CHECK(std::chrono::steady_clock::now() - start < within(1s));
  CHECK_FALSE(is_alive(worker));
}

TEST_CASE("L5: Ctrl-C pressed twice at a terminal kills at once, however quick that is") {
  const Launch launch;
  TerminalChild process(Launch::command({}, {"ignore-term", "pid", "pid", "sleep", "100"}),
                        launch.folder.path());
  const pid_t worker = launch.pid_in("pid");
  process.press(kCtrlC);
  REQUIRE(process.shows("Ctrl-C kills them now", within(5s)));
  const auto start = std::chrono::steady_clock::now();
  process.press(kCtrlC);
  CHECK(process.wait(within(5s)) == 130);
  CHECK(std::chrono::steady_clock::now() - start < within(1s));
  CHECK_FALSE(is_alive(worker));
}

// As in `ssh -t host fleetrun`, where no shell could continue it.
TEST_CASE("hunt 84: if no shell could continue the run, it ignores Ctrl-Z, and Ctrl-C ends it") {
  for (const bool below_shell : {false, true}) {
    CAPTURE(below_shell);
    const Launch launch;
    Words words = Launch::command({}, {"pid", "pid", "sleep", "100"});
    if (below_shell) words.insert(words.begin(), {"/bin/sh", "-c", "\"$@\"; exit $?", "sh"});
    TerminalChild process(words, launch.folder.path());
    const pid_t worker = launch.pid_in("pid");
    process.press(kCtrlZ);
    process.press(kCtrlC);
    CHECK(process.wait(within(10s)) == 130);
    CHECK_FALSE(is_alive(worker));
  }
}

// A worker that takes half a second for its checkpoint, and says when it was asked.
constexpr const char* kSlowCheckpoint =
    "trap 'echo > asked; sleep 0.5; echo saved > checkpoint; exit 0' INT\n$FAKE ready up\n"
    "while :; do sleep 0.02; done\n";

TEST_CASE("row 'timeout -s INT': a signal that is sent twice asks once, and the checkpoint is written") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({}, kSlowCheckpoint), launch.options());
  launch.pid_in("up");
  const auto start = std::chrono::steady_clock::now();
  process.send(SIGINT);
  REQUIRE(comes_true([&] { return launch.folder.has("asked"); }, within(5s)));
  process.send(SIGINT);
  if (std::chrono::steady_clock::now() - start > kSameSignal)
    LEAVE_OUT("too slow to send a signal twice within a second");
  CHECK(process.wait().code == 130);
  CHECK(launch.folder.read("checkpoint") == "saved\n");
}

TEST_CASE("row 'timeout -s INT': timeout(1) itself ends a run that writes its checkpoint") {
  const ScriptLaunch launch;
  Words words = {"/usr/bin/timeout", "-s", "INT", "1"};
  const Words command = launch.script_command({}, kSlowCheckpoint);
  words.insert(words.end(), command.begin(), command.end());
  CHECK(run_child(words, launch.options()).code == 124);
  REQUIRE(comes_true([&] { return launch.folder.has("log/report.json"); }, within(5s)));
  CHECK(launch.folder.read("checkpoint") == "saved\n");
}

TEST_CASE("row 'timeout -s INT': one Ctrl-C on a run below timeout(1) is one") {
  const ScriptLaunch launch;
  Words words = {"/usr/bin/timeout", "30"};
  const Words command = launch.script_command({}, kSlowCheckpoint);
  words.insert(words.end(), command.begin(), command.end());
  TerminalChild process(words, launch.folder.path());
  launch.pid_in("up");
  const auto start = std::chrono::steady_clock::now();
  process.press(kCtrlC);
  REQUIRE(comes_true([&] { return launch.folder.has("asked"); }, within(5s)));
  const bool slow = std::chrono::steady_clock::now() - start > kSameSignal;
  process.wait(within(10s));
  REQUIRE(comes_true([&] { return launch.folder.has("log/report.json"); }, within(5s)));
  if (slow) LEAVE_OUT("too slow for the signals of one key press to come within a second");
  CHECK(launch.folder.read("checkpoint") == "saved\n");
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
                                       {"pid", "pid.%r", "await", "go", "exit", "0"}),
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
  launch.folder.write("go", "");
  process.send(SIGCONT);
  CHECK(process.wait().code == 0);
}

// Until the process stands, and then longer than the time that must not pass.
void stand_still(const ChildProcess& process, pid_t worker, std::chrono::milliseconds time) {
  process.send(SIGTSTP);
  REQUIRE(comes_true([&] { return state_of(worker) == 'T' && state_of(process.pid()) == 'T'; }, within(2s)));
  REQUIRE_FALSE(comes_true([&] { return state_of(worker) != 'T'; }, time));
}

TEST_CASE("row '--timeout 3, then Ctrl-Z': the timeout stands still while the run is suspended") {
  const Launch launch;
  ChildProcess process(Launch::command({"--timeout=2"}, {"pid", "pid", "sleep", "0.5", "exit", "0"}),
                       launch.options());
  stand_still(process, launch.pid_in("pid"), 2500ms);
  process.send(SIGCONT);
  CHECK(process.wait().code == 0);
}

TEST_CASE("row '--early_exit_wait 3, then Ctrl-Z': it stands still while the run is suspended") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({"--nproc_per_node=2", "--early_exit_wait=2"},
                                             "[ $RANK = 0 ] && exit 0\n"
                                             "exec $FAKE pid pid sleep 0.5 exit 0\n"),
                       launch.options());
  stand_still(process, launch.pid_in("pid"), 2500ms);
  process.send(SIGCONT);
  CHECK(process.wait().code == 0);
}

TEST_CASE("row '--restart_delay 3, Ctrl-Z in the pause': the next attempt waits for CONT") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({"--max_restart=1", "--restart_delay=1"},
                                             "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exec $FAKE ready again\n"
                                             "exec $FAKE pid pid exit 1\n"),
                       launch.options());
  const pid_t worker = launch.pid_in("pid");
  REQUIRE(comes_true([&] { return state_of(worker) == '?'; }, within(5s)));  // reaped: the attempt is over
  process.send(SIGTSTP);
  REQUIRE(comes_true([&] { return state_of(process.pid()) == 'T'; }, within(2s)));
  CHECK_FALSE(comes_true([&] { return launch.folder.has("again"); }, 3s));
  process.send(SIGCONT);
  CHECK(process.wait().code == 0);
  CHECK(launch.folder.has("again"));
}

TEST_CASE("stop ends a run that Ctrl-Z suspended, its front process, too") {
  const Launch launch;
  ChildProcess run(Launch::command({}, {"pid", "pid", "sleep", "600"}), launch.options());
  stand_still(run, launch.pid_in("pid"), 100ms);
  CHECK(run_child({FLEETRUN_BINARY, "stop"}, launch.options()).code == 0);
  CHECK(run.wait().code == 143);  // and not never
}

TEST_CASE("row 'nested': the timeout of a launcher that is stopped without a word stands still") {
  const Launch launch;
  const auto timeout = within(3s);
  ChildProcess process(Launch::command({"--timeout=" + std::to_string(timeout.count() / 1000)},
                                       {"pid", "pid", "await", "go", "exit", "0"}),
                       launch.options());
  const pid_t middle = parent_of(launch.pid_in("pid"));
  ::kill(middle, SIGSTOP);  // as a launcher above does when its Ctrl-Z is not read in time
  REQUIRE(comes_true([&] { return state_of(middle) == 'T'; }, within(5s)));
  CHECK_FALSE(comes_true([&] { return state_of(middle) != 'T'; }, timeout + 500ms));
  ::kill(middle, SIGCONT);
  launch.folder.write("go", "");
  CHECK(process.wait().code == 0);
}

TEST_CASE("row 'nested': Ctrl-Z stops the ranks of a launcher below us, and its timeout stands still") {
  const Launch launch;
  const auto timeout = within(2s);
  Words words = {FLEETRUN_BINARY, FLEETRUN_BINARY, "--log_dir=inner", "--nproc_per_node=2",
                 "--timeout=" + std::to_string(timeout.count() / 1000)};
  words.insert(words.end(),
               {FAKE_WORKER, "pid", "pid.%r", "sleep", std::to_string(seconds_within(1s)), "exit", "0"});
  ChildProcess outer(words, launch.options());
  const pid_t first = launch.pid_in("pid.0"), second = launch.pid_in("pid.1");
  // Answered by its loop, which also takes the signals.
  CHECK(run_child({FLEETRUN_BINARY, "ps", "--log_dir=inner"}, launch.options()).code == 0);
  stand_still(outer, first, timeout + 500ms);
  CHECK(state_of(second) == 'T');
  outer.send(SIGCONT);
  CHECK(outer.wait().code == 0);
}

TEST_CASE("row 'nested': Ctrl-Z stops processes in sessions of their own, and those that ignore it") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({"--nproc_per_node=2"},
                                             "trap '' TSTP\nsetsid $FAKE pid apart.$RANK sleep 2 &\nwait\n"),
                       launch.options());
  const pid_t first = launch.pid_in("apart.0"), second = launch.pid_in("apart.1");
  const pid_t leader = parent_of(first);
  process.send(SIGTSTP);
  for (const pid_t pid : {first, second, leader})
    CHECK(comes_true([&] { return state_of(pid) == 'T'; }, within(3s)));
  process.send(SIGCONT);
  CHECK(process.wait().code == 0);
}

TEST_CASE("row 'nested': a suspended run that is stopped ends with all that it held") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({}, "setsid $FAKE pid apart sleep 100 &\nwait\n"),
                       launch.options());
  const pid_t apart = launch.pid_in("apart");
  process.send(SIGTSTP);
  for (const pid_t pid : {apart, process.pid()})
    REQUIRE(comes_true([&] { return state_of(pid) == 'T'; }, within(3s)));
  CHECK(launch.run_words({"stop"}).code == 0);
  process.send(SIGCONT);
  CHECK(process.wait().code == 143);
  CHECK_FALSE(is_alive(apart));
}

TEST_CASE("row 'signal KILL --rank 1': the message says who had the signal sent") {
  const Launch launch;
  ChildProcess process(Launch::command({"--nproc_per_node=2"}, {"pid", "pid.%r", "sleep", "100"}),
                       launch.options());
  launch.pid_in("pid.0");
  launch.pid_in("pid.1");
  CHECK(launch.run_words({"signal", "KILL", "--rank", "1"}).code == 0);
  const ChildResult result = process.wait();
  CHECK(result.code == 137);
  CHECK(contains(result.err, "fleetrun: rank 1 was killed by SIGKILL (9), which process "));
  CHECK(contains(result.err, " sent with fleetrun signal (pid "));
  CHECK_FALSE(contains(result.err, "not by fleetrun"));
}

TEST_CASE("L9: SIGQUIT says what the ranks are doing, with stacks where there is a debugger, and goes on") {
  const Launch launch;
  std::filesystem::create_directory(launch.folder / "tools");
  launch.folder.write("tools/gdb", "#!/bin/sh\necho \"stack of $4\"\n");
  std::filesystem::permissions(launch.folder / "tools/gdb", std::filesystem::perms::owner_all);
  ChildOptions options = launch.options();
  options.environment["PATH"] = launch.folder / "tools" + ":" + std::getenv("PATH");
  ChildProcess process(
      with_errors_in_a_file(Launch::command(
          {"--nproc_per_node=2"}, {"print", "epoch 1", "pid", "pid.%r", "await", "go", "exit", "0"})),
      options);
  const pid_t worker = launch.pid_in("pid.1");
  launch.pid_in("pid.0");
  process.send(SIGQUIT);
  CHECK(says(launch, "fleetrun: what the ranks are doing:\n    rank 0  pid "));
  CHECK(says(launch, "  last line: epoch 1\n"));
  const std::string stack = "stack of " + std::to_string(worker) + "\n";
  CHECK(comes_true([&] { return launch.folder.read("log/stacks.1") == stack; }, within(5s)));
  launch.folder.write("go", "");
  CHECK(process.wait().code == 0);
  CHECK(launch.report()["roll_call"].size() >= 2);
}

TEST_CASE("L10: SIGUSR1 and SIGUSR2 are passed on to the ranks that handle them, and end none") {
  const ScriptLaunch launch;
  ChildProcess process(with_errors_in_a_file(launch.script_command(
                           {"--nproc_per_node=2"},
                           "[ $RANK = 0 ] && exec $FAKE ready up.0 await go\n"
                           "exec $FAKE on-usr1 'checkpoint now' ready up.1 await go\n")),
                       launch.options());
  launch.pid_in("up.0");
  launch.pid_in("up.1");
  process.send(SIGUSR1);
  process.send(SIGUSR2);
  CHECK(says(launch, "fleetrun: SIGUSR1 (10) was not passed on, because it would end rank 0\n"));
  CHECK(says(launch, "fleetrun: SIGUSR2 (12) was not passed on, because it would end ranks 0, 1\n"));
  CHECK(comes_true([&] { return contains(launch.folder.read("log/workerlog.1"), "checkpoint now"); },
                   within(5s)));
  launch.folder.write("go", "");
  CHECK(process.wait().code == 0);
}

TEST_CASE("hunt 1: a rank that dies of a signal which fleetrun passed on is reported as such") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({},
                                             "trap 'trap - USR1; kill -USR1 $$' USR1\n$FAKE ready up\n"
                                             "while :; do sleep 0.02; done\n"),
                       launch.options());
  launch.pid_in("up");
  process.send(SIGUSR1);
  const ChildResult result = process.wait();
  CHECK(result.code == 138);
  CHECK_MESSAGE(
      contains(result.err, "fleetrun: rank 0 was killed by SIGUSR1 (10), which fleetrun passed on (pid "),
      result.err);
}

TEST_CASE(
    "hunt 4: a rank that survived a SIGUSR1 of ours and dies of a later one was not killed by fleetrun") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({},
                                             "trap 'trap - USR1; : > survived' USR1\n$FAKE pid pid ready up\n"
                                             "while [ ! -e go ]; do sleep 0.02; done\nkill -USR1 $$\n"),
                       launch.options());
  launch.pid_in("up");
  process.send(SIGUSR1);
  REQUIRE(comes_true([&] { return launch.folder.has("survived"); }, within(5s)));
  std::this_thread::sleep_for(1100ms);  // the second after which it has survived
  launch.folder.write("go", "");
  const ChildResult result = process.wait();
  CHECK(result.code == 138);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 0 was killed by SIGUSR1 (10), not by fleetrun (pid "),
                result.err);
}

TEST_CASE("hunt 1: a rank whose main thread alone blocks a signal is spared it, and named") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const ScriptLaunch launch;
  launch.folder.write("blocks.py",
                      "import pathlib, signal, threading, time\n"
                      "done = threading.Event()\n"
                      "threading.Thread(target=done.wait, daemon=True).start()\n"
                      "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
                      "pathlib.Path('up').write_text('0\\n')\n"
                      "while not pathlib.Path('go').exists(): time.sleep(0.02)\n");
  ChildProcess process(with_errors_in_a_file({FLEETRUN_BINARY, "--nproc_per_node=1", "blocks.py"}),
                       launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("up"); }, within(10s)));
  process.send(SIGUSR1);
  CHECK(says(launch, "fleetrun: SIGUSR1 (10) was not passed on, because it would end rank 0\n"));
  launch.folder.write("go", "");
  CHECK(process.wait().code == 0);
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
  REQUIRE(comes_true([&] { return state_of(middle) == 'T'; }, within(5s)));
  CHECK_FALSE(comes_true([&] { return state_of(middle) != 'T'; }, 800ms));  // longer than the hang's time
  process.send(SIGCONT);
  ::kill(middle, SIGCONT);
  CHECK(process.wait().code == 0);
}

}  // namespace
}  // namespace fleetrun::signal_fault_test
