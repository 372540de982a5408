// W1 to W6, W12 to W15: how ranks fail or hang, and what the run says about the cause.
#include "e2e/faults/faults.h"
#include "e2e/peers.h"

namespace fleetrun::worker_fault_test {
namespace {

TEST_CASE(
    "W1: a rank that exits with 3 ends the run with 3, is named with its last lines, and nobody else is blamed") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script(
      {"--nproc_per_node=3"}, "[ $RANK = 1 ] || exec $FAKE sleep 100\necho oh no\nsleep 0.1\nexit 3\n");
  CHECK(result.code == 3);
  CHECK(result.seconds < seconds_within(1s));
  CHECK(
      contains(result.err, "ABORT!!! Out of all 3 trainers, the trainer process with rank=[1] was aborted."));
  CHECK(contains(result.err, "fleetrun: rank 1 exited with code 3 (pid "));
  CHECK(contains(result.err, "fleetrun: it ran: /bin/sh worker.sh\n"));
  CHECK(contains(result.err, "fleetrun: the last lines of log/workerlog.1:\n    oh no\n"));
  CHECK(contains(result.err, "fleetrun: stopped by fleetrun: ranks 0, 2\n"));
  const auto report = launch.report();
  CHECK(report["cause"] == "exited");
  CHECK(report["first_failed_rank"] == 1);
  CHECK(report["ranks"][0]["role"] == "stopped");
  CHECK(report["ranks"][1]["role"] == "primary");
  CHECK(report["last_lines"].back() == "oh no");
  CHECK_FALSE(report["host"].get<std::string>().empty());
}

TEST_CASE("W2: every exit code from 0 to 255 is passed on as it is") {
  const Launch launch;
  for (int code = 0; code <= 255; ++code) {
    const int got = launch.run({}, {"exit", std::to_string(code)}).code;
    CHECK_MESSAGE(got == code, got);
  }
}

TEST_CASE("W3: a rank that is killed gives 137 at once, and no memory is blamed without evidence") {
  const Launch launch;
  ChildProcess process(Launch::command({"--nproc_per_node=2"}, {"pid", "pid.%r", "sleep", "100"}),
                       launch.options());
  const pid_t other = launch.pid_in("pid.0");
  ::kill(launch.pid_in("pid.1"), SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  const ChildResult result = process.wait();
  CHECK(std::chrono::steady_clock::now() - start < within(1s));
  CHECK(result.code == 137);
  CHECK(contains(result.err, "fleetrun: rank 1 was killed by SIGKILL (9), not by fleetrun (pid "));
  CHECK_FALSE(contains(result.err, "out of memory"));
  CHECK_FALSE(is_alive(other));
  CHECK(launch.report()["cause"] == "killed");
}

TEST_CASE("W4: every signal that ends a rank has its code and name, and where the core is") {
  const Launch launch;
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    const ChildResult result = launch.run({}, {"signal", std::to_string(number)});
    CHECK(result.code == 128 + number);
    CHECK(contains(result.err, std::string("was killed by SIG") + ::sigabbrev_np(number) + " ("));
    CHECK(contains(result.err, "core"));
  }
}

TEST_CASE("W4: a core file in the folder is pointed to") {
  std::ifstream pattern("/proc/sys/kernel/core_pattern");
  std::string text;
  std::getline(pattern, text);
  if (text.find_first_of("|/%") != std::string::npos) LEAVE_OUT("core_pattern is " + text);
  if (testing::kSlowdown > 1) LEAVE_OUT("sanitizers forbid core files");
  const ScriptLaunch launch;
  const ChildResult result = launch.run_after("ulimit -c unlimited", Launch::command({}, {"signal", "11"}));
  CHECK(result.code == 139);
  CHECK(contains(result.err, "fleetrun: core file: /"));
}

TEST_CASE(
    "W4: a bus error because /dev/shm is too small is reported with that cause, though the rank's memory went with it") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small /dev/shm cannot be mounted here");
  const Launch launch;
  const ChildResult result =
      run_child(after_mount("mount -t tmpfs -o size=1m tmpfs /dev/shm",
                            Launch::command({"--nproc_per_node=2"}, {"only", "1", "fill-shared-memory"})),
                launch.options());
  CHECK(result.code == 128 + SIGBUS);
  CHECK(contains(result.err, "fleetrun: rank 1 was killed by SIGBUS (7), not by fleetrun (pid "));
  CHECK_MESSAGE(
      contains(result.err,
               "/dev/shm has only 1 MiB; a process dies of a bus error if it needs more shared memory"),
      result.err);
  CHECK(contains(launch.report()["evidence"].dump(), "/dev/shm has only 1 MiB"));
}

TEST_CASE("W4: a bus error while somebody else has filled /dev/shm is reported with that cause") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small /dev/shm cannot be mounted here");
  const Launch launch;
  const ChildResult result = run_child(
      after_mount("mount -t tmpfs -o size=1m tmpfs /dev/shm && head -c 1M /dev/zero > /dev/shm/filled",
                  Launch::command({}, {"fill-shared-memory"})),
      launch.options());
  CHECK(result.code == 128 + SIGBUS);
  CHECK_MESSAGE(contains(result.err, "/dev/shm is full: "), result.err);
}

TEST_CASE("W5: a rank that is stopped is found, named with its state, and ended though others are busy") {
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_script({"--nproc_per_node=2", "--hang_timeout=0.5", "--grace=0.1"},
                        "[ $RANK = 0 ] && exec $FAKE spin\nexec $FAKE signal 19 sleep 100\n");
  CHECK(result.code == 75);
  CHECK(result.seconds < seconds_within(4s));
  CHECK(contains(result.err, "fleetrun: rank 1 is stopped for 0."));
  CHECK(contains(result.err, "  stopped (T)"));
  CHECK(contains(result.err, "    rank 1 is stopped, the others are not\n"));
  CHECK(launch.report()["cause"] == "hung");
  CHECK(launch.report()["roll_call"].size() == 3);
}

TEST_CASE("W6: a rank that computes for ever without progress is found by the lines that do not come") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script(
      {"--nproc_per_node=2", "--log_rule=step \\d+ within 0.5s", "--grace=0.1"},
      "[ $RANK = 1 ] && exec $FAKE spin\nfor i in 1 2 3 4; do echo step $i; sleep 0.2; done; exec sleep 100\n");
  CHECK(result.code == 75);
  CHECK(result.seconds > 1.1);
  CHECK(contains(result.err, "no line of any rank obeys --log_rule 'step \\d+ within 0.5s'"));
  CHECK(contains(result.err, "    rank 1 is computing, the others are not\n"));
}

TEST_CASE("hunt 5: a progress bar that ends its lines with a carriage return obeys a log rule") {
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_script({"--log_rule=it/s within 0.5s", "--grace=0.1"},
                        "for i in 1 2 3 4 5 6; do printf '\\r%s/6 [00:01, 9.9it/s]' $i; sleep 0.2; done\n");
  CHECK_MESSAGE(result.code == 0, result.err);
}

TEST_CASE("hunt: a rank that waits for work which it started in a session of its own does not hang") {
  const ScriptLaunch launch;
  launch.folder.write("busy.sh",
                      "end=$(($(date +%s) + 3))\nwhile [ $(date +%s) -lt $end ]; do :; done\n"
                      "echo done > answer\n");
  const ChildResult result =
      launch.run_script({"--hang_timeout=1", "--grace=0.1"},
                        "mkfifo answer\nsetsid -f /bin/sh busy.sh\nread line < answer\necho $line\n");
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(launch.folder.read("log/workerlog.0") == "done\n");
}

TEST_CASE("hunt: fleetrun warns about a rank that empties its own log through /dev/stderr") {
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_script({"--nproc_per_node=2"},
                        "echo a long first line\nuntil grep -q \" $RANK \" log/.times; do sleep 0.05; done\n"
                        "[ $RANK = 1 ] || exit 0\necho oops > /dev/stderr\n");
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(launch.folder.read("log/workerlog.1") == "oops\n");
  CHECK_MESSAGE(contains(result.err, "warning: log/workerlog.1 was emptied"), result.err);
  CHECK(contains(result.err, "\">&2\" and \">>\" do not"));
}

TEST_CASE("W6: a silent and idle program is found, its stacks are written, and it can be started again") {
  const ScriptLaunch launch;
  std::filesystem::create_directory(launch.folder / "tools");
  launch.folder.write("tools/gdb", "#!/bin/sh\necho \"stack of $4\"\n");
  std::filesystem::permissions(launch.folder / "tools/gdb", std::filesystem::perms::owner_all);
  ChildOptions options = launch.options();
  options.environment["PATH"] = launch.folder / "tools" + ":" + std::getenv("PATH");
  const Words command = launch.script_command(
      {"--nproc_per_node=2", "--hang_timeout=0.5", "--grace=0.1", "--max_restart=1", "--restart_delay=0.01"},
      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0\necho working\n"
      "exec $FAKE sleep 100\n");
  const ChildResult result = run_child(command, options);
  CHECK(result.code == 0);
  CHECK(contains(result.err,
                 "no rank writes anything or works for 0.5 s; what the ranks are doing:\n    rank 0  pid "));
  CHECK(contains(result.err, "last line: working\n"));
  CHECK(contains(result.err, "fleetrun: their stacks: log/stacks.0, log/stacks.1\n"));
  CHECK(contains(launch.folder.read("log/attempt-0/stacks.1"), "stack of "));
  CHECK(launch.report()["earlier_attempts"].size() == 1);
}

TEST_CASE("W6: the Python stack of a silent rank is written where py-spy is installed") {
  const Launch launch;
  ChildOptions options = launch.options();
  options.environment["PATH"] = std::getenv("PATH") + (":" + torch_folder());
  const Words look = {"/bin/sh", "-c", "command -v python3 && command -v py-spy"};
  if (run_child(look, options).code != 0)
    LEAVE_OUT("python3 or py-spy is not installed; scripts/test --peers installs both");
  launch.folder.write(
      "train.py", "import time\n\ndef waits_for_nothing():\n    time.sleep(100)\n\nwaits_for_nothing()\n");
  const ChildResult result = run_child(
      {FLEETRUN_BINARY, "--nproc_per_node=2", "--hang_timeout=1", "--grace=0.1", "train.py"}, options);
  CHECK(result.code == 75);
  CHECK(contains(result.err, "fleetrun: their stacks: log/stacks.0, log/stacks.1\n"));
  CHECK(contains(launch.folder.read("log/stacks.1"), "waits_for_nothing (train.py:4)"));
}

// To run a launcher in; none where such a cgroup cannot be made.
std::optional<TestCgroup> cgroup_of_256_mib() {
  auto group = TestCgroup::make("memory");
  const char* limit = group && group->version() == 2 ? "memory.max" : "memory.limit_in_bytes";
  if (!group || !group->set(limit, "268435456")) return std::nullopt;
  group->set("memory.swap.max", "0");
  group->set("memory.memsw.limit_in_bytes", "268435456");
  return group;
}

TEST_CASE(
    "W12: a rank that takes more memory than its cgroup has is said to be out of memory, with the limit") {
  const auto group = cgroup_of_256_mib();
  if (!group) LEAVE_OUT("no cgroup with a memory limit can be made here");
  const ScriptLaunch launch;
  const ChildResult result = launch.run_after(
      group->enter(),
      launch.script_command({"--nproc_per_node=2"},
                            "[ $RANK = 0 ] && exec $FAKE sleep 100\nexec $FAKE use-memory 536870912\n"));
  CHECK(result.code == 137);
  CHECK(contains(result.err, "fleetrun: rank 1 was killed by SIGKILL (9), not by fleetrun (pid "));
  CHECK(contains(
      result.err,
      "out of memory: the kernel killed 1 process of this memory cgroup during the run, limit 256 MiB, peak 256 MiB"));
  CHECK(launch.report()["cause"] == "oom");
  CHECK(contains(launch.report()["message"].get<std::string>(), "out of memory"));
}

TEST_CASE("W12: a script whose program takes more memory than its cgroup has is said to be out of memory") {
  const auto group = cgroup_of_256_mib();
  if (!group) LEAVE_OUT("no cgroup with a memory limit can be made here");
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_after(group->enter(), launch.script_command({}, "$FAKE use-memory 536870912\nexit $?\n"));
  CHECK(result.code == 137);
  CHECK_MESSAGE(contains(result.err, "out of memory: the kernel killed 1 process of this memory cgroup"),
                result.err);
  CHECK(launch.report()["cause"] == "oom");
}

TEST_CASE("W12: of a rank that fails since a process of its own ran out of memory, that is said, too") {
  const auto group = cgroup_of_256_mib();
  if (!group) LEAVE_OUT("no cgroup with a memory limit can be made here");
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_after(group->enter(), launch.script_command({}, "$FAKE use-memory 536870912\nexit 1\n"));
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "out of memory: the kernel killed 1 process of this memory cgroup"),
                result.err);
  CHECK(launch.report()["cause"] == "exited");
}

TEST_CASE("W12: after an attempt that ran out of memory a rank that is killed is not out of memory") {
  const auto group = cgroup_of_256_mib();
  if (!group) LEAVE_OUT("no cgroup with a memory limit can be made here");
  const ScriptLaunch launch;
  const ChildResult result = launch.run_after(
      group->enter(), launch.script_command({"--max_restart=1", "--restart_delay=0.1"},
                                            "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && kill -9 $$\n"
                                            "exec $FAKE use-memory 536870912\n"));
  CHECK(result.code == 93);  // restarts did not help
  CHECK(launch.report()["cause"] == "killed");
  CHECK_FALSE(contains(launch.report()["message"].get<std::string>(), "out of memory"));
}

TEST_CASE("W13: of two ranks that fail one after the other the first is the cause, each time") {
  const ScriptLaunch launch;
  const char* count = std::getenv("FLEETRUN_TEST_RACES");
  for (int i = 0; i < (count == nullptr ? 20 : std::atoi(count)); ++i) {
    const std::string file = "failed." + std::to_string(i);
    const ChildResult result = launch.run_script(
        {"--nproc_per_node=2"}, "[ $RANK = 1 ] && sleep 0.03 && : > " + file + " && exit 4\nwhile [ ! -e " +
                                    file + " ]; do :; done\nsleep 0.005\nexit 5\n");
    CHECK(result.code == 4);
    CHECK(launch.report()["first_failed_rank"] == 1);
  }
}

TEST_CASE("W14: a rank that ends early with 0 is normal, and an error only where that was asked for") {
  const ScriptLaunch launch;
  const std::string script = "[ $RANK = 1 ] && exit 0\nexec $FAKE sleep 0.6\n";
  CHECK(launch.run_script({"--nproc_per_node=2"}, script).code == 0);
  const ChildResult result = launch.run_script({"--nproc_per_node=2", "--early_exit_wait=0.2"}, script);
  CHECK(result.code == 75);
  CHECK(contains(result.err,
                 "fleetrun: rank 1 finished 0.2 s ago and others still run; what the ranks are doing:\n"));
  CHECK(contains(result.err, "    rank 1  finished with 0\n"));
  CHECK(launch.report()["cause"] == "early_exit");
}

TEST_CASE("W15: a rank of a job that never joins the others is named, and the run ends with 75") {
  const Launch launch;  // a launcher with a worker program of its own beside it
  std::filesystem::copy_file(FLEETRUN_BINARY, launch.folder / "fleetrun");
  launch.folder.write("fleetrun-worker", std::string("#!/bin/sh\n[ $FLEETRUN_RANK = 1 ] && exit 0\nexec ") +
                                             FLEETRUN_WORKER + " \"$@\"\n");
  std::filesystem::permissions(launch.folder / "fleetrun-worker", std::filesystem::perms::owner_all);
  launch.folder.write("job.json", kEndlessJob);
  const ChildResult result = run_child({launch.folder / "fleetrun", "--nproc_per_node=2", "--device=cpu",
                                        "--early_exit_wait=0.5", "--grace=0.5", "job.json"},
                                       launch.options());
  CHECK(result.code == 75);
  CHECK(contains(result.err, "fleetrun: rank 1 finished 0.5 s ago and others still run"));
  CHECK(contains(result.err, "joining, step 0"));
}

}  // namespace
}  // namespace fleetrun::worker_fault_test
