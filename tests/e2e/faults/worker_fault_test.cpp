// W: what workers do to themselves and to the launcher.

#include "e2e/faults/faults.h"

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

TEST_CASE("W4: a bus error because /dev/shm is full is told with that cause") {
  if (!is_root() || !can_mount()) LEAVE_OUT("a small /dev/shm cannot be mounted here");
  const Launch launch;
  Words words = {"/usr/bin/unshare",
                 "-m",
                 "/bin/sh",
                 "-c",
                 "mount -t tmpfs -o size=1m tmpfs /dev/shm && exec \"$@\"",
                 "sh"};
  const Words command = Launch::command({"--nproc_per_node=2"}, {"only", "1", "fill-shared-memory"});
  words.insert(words.end(), command.begin(), command.end());
  const ChildResult result = run_child(words, launch.options());
  CHECK(result.code == 128 + SIGBUS);
  CHECK(contains(result.err, "fleetrun: rank 1 was killed by SIGBUS (7), not by fleetrun (pid "));
  CHECK(contains(result.err, "/dev/shm is full: "));
  CHECK(contains(launch.report()["evidence"].dump(), "/dev/shm is full"));
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
      "[ $RANK = 1 ] && exec $FAKE spin\nfor i in 1 2 3 4; do echo step $i; sleep 0.2; done; exec $FAKE sleep 100\n");
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
  const Words look = {"/bin/sh", "-c", "command -v python3 && command -v py-spy"};
  if (run_child(look).code != 0) LEAVE_OUT("python3 or py-spy is not installed: pip install py-spy");
  const Launch launch;
  launch.folder.write(
      "train.py", "import time\n\ndef waits_for_nothing():\n    time.sleep(100)\n\nwaits_for_nothing()\n");
  const ChildResult result =
      launch.run_words({"--nproc_per_node=2", "--hang_timeout=1", "--grace=0.1", "train.py"});
  CHECK(result.code == 75);
  CHECK(contains(result.err, "fleetrun: their stacks: log/stacks.0, log/stacks.1\n"));
  CHECK(contains(launch.folder.read("log/stacks.1"), "waits_for_nothing (train.py:4)"));
}

TEST_CASE("W7: a rank that ignores SIGTERM is killed when the grace is over") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script(
      {"--nproc_per_node=2", "--grace=0.3"},
      "[ $RANK = 1 ] && exec $FAKE sleep 0.1 exit 4\ntrap '' TERM\nwhile :; do sleep 1; done\n");
  CHECK(result.code == 4);
  CHECK(result.seconds > 0.35);
  CHECK(result.seconds < seconds_within(1400ms));
  CHECK(launch.report()["ranks"][0]["signal"] == SIGKILL);
}

TEST_CASE("W7: a rank that cleans up at SIGTERM has the time for it, with its helpers alive") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({},
                                             "$FAKE pid helper sleep 100 &\n"
                                             "trap 'kill -0 $! && echo helper lives; exit 9' TERM\n"
                                             "echo $$ > up.new && mv up.new up\nwait\n"),
                       launch.options());
  launch.pid_in("up");
  const pid_t helper = launch.pid_in("helper");
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "helper lives\n"));
  CHECK(contains(result.err, "fleetrun: rank 0 exited with code 9 after fleetrun asked it to stop\n"));
  CHECK_FALSE(is_alive(helper));
}

TEST_CASE("W8: a rank that ignores SIGTERM and makes children all the time is ended with all of them") {
  const Launch launch;
  for (const char* cgroup : {"--cgroup=auto", "--cgroup=none"}) {
    ChildProcess process(Launch::command({cgroup, "--grace=0.1"}, {"pid", "pid", "spawn-for-ever"}),
                         launch.options());
    const pid_t worker = launch.pid_in("pid");
    REQUIRE(comes_true([&] { return state_of(worker) != '?'; }, 1s));
    process.send(SIGTERM);
    const ChildResult result = process.wait();
    CHECK(result.code == 143);
    CHECK(result.seconds < seconds_within(4s));
    CHECK_FALSE(contains(result.err, "still there"));
    std::filesystem::remove(launch.folder / "pid");
  }
}

TEST_CASE("W9: a fork bomb inside a limit of processes is ended") {
  const auto group = TestCgroup::make("pids");
  if (!group || !group->set("pids.max", "60")) LEAVE_OUT("no cgroup with pids.max can be made here");
  const ScriptLaunch launch;
  for (const char* cgroup : {"--cgroup=auto", "--cgroup=none"}) {
    const ChildResult result =
        launch.run_after(group->enter(), Launch::command({cgroup, "--grace=0.1", "--timeout=0.5"}, {"bomb"}));
    CHECK(result.code == 124);
    CHECK(result.seconds < seconds_within(5s));
    CHECK_FALSE(contains(result.err, "still there"));
    std::ifstream left(group->path() + "/cgroup.procs");
    std::string pid;
    CHECK_FALSE(std::getline(left, pid));
  }
}

TEST_CASE("W10: a daemon that a rank leaves behind ends with the run") {
  const Launch launch;
  for (const char* cgroup : {"--cgroup=auto", "--cgroup=none"}) {
    const ChildResult result =
        launch.run({"--nproc_per_node=2", cgroup}, {"daemon", "daemon.%r", "child", "sleep", "0.2"});
    CHECK(result.code == 0);
    CHECK(result.seconds < seconds_within(1200ms));
    for (const char* name : {"daemon.0", "daemon.1"}) {
      CHECK_FALSE(is_alive(launch.pid_in(name)));
      std::filesystem::remove(launch.folder / name);
    }
  }
}

TEST_CASE("W11: a grandchild that keeps the output open holds nothing up") {
  const Launch launch;
  const ChildResult result = launch.run({}, {"daemon", "daemon", "print", "the end", "exit", "0"});
  CHECK(result.code == 0);
  CHECK(result.seconds < seconds_within(1s));
  CHECK(contains(result.out, "the end\n"));
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

TEST_CASE("W16: a program that cannot run is said once, and nothing is made") {
  const Launch launch;
  launch.folder.write("plain", "no program");
  CHECK(launch.run_words({"--nproc_per_node=4", "no-such-program"}).code == 127);
  CHECK(launch.run_words({"no-such-script.py"}).code == 127);
  const ChildResult result = launch.run_words({"--nproc_per_node=4", "./plain"});
  CHECK(result.code == 126);
  CHECK(result.err == "fleetrun: error: ./plain is not executable\n  hint: chmod +x ./plain makes it so\n");
  CHECK(result.out.empty());
  CHECK_FALSE(launch.folder.has("log"));
}

TEST_CASE("W16: a script whose interpreter is missing, or ends with a carriage return, is told so") {
  const Launch launch;
  launch.folder.write("script", "#! /no/such/interpreter -u\n");
  launch.folder.write("windows", "#!/bin/sh\r\nexit 0\r\n");
  for (const char* name : {"script", "windows"})
    std::filesystem::permissions(launch.folder / name, std::filesystem::perms::owner_all);
  const ChildResult script = launch.run_words({"--nproc_per_node=3", "./script"});
  CHECK(script.code == 127);
  CHECK(script.err ==
        "fleetrun: error: ./script needs the interpreter /no/such/interpreter, which does not exist\n");
  const ChildResult windows = launch.run_words({"./windows"});
  CHECK(windows.code == 127);
  CHECK(
      windows.err ==
      "fleetrun: error: the line #!/bin/sh of ./windows ends with a carriage return, as on Windows: there is "
      "no such interpreter\n  hint: sed -i 's/\\r$//' ./windows removes the carriage returns\n");
  CHECK_FALSE(launch.folder.has("log"));
}

TEST_CASE("W16: a program on a noexec mount is said to be on one, whatever its mode") {
  if (!is_root() || !can_mount()) LEAVE_OUT("nothing can be mounted here");
  const ScriptLaunch launch;
  std::filesystem::create_directory(launch.folder / "disk");
  launch.folder.write("run.sh", "#!/bin/sh\nexit 0\n");
  std::filesystem::permissions(launch.folder / "run.sh", std::filesystem::perms::owner_all);
  Words words = {"/usr/bin/unshare",
                 "-m",
                 "/bin/sh",
                 "-c",
                 "mount -t tmpfs -o noexec tmpfs disk && cp -p run.sh disk && exec \"$@\"",
                 "sh",
                 FLEETRUN_BINARY,
                 "disk/run.sh"};
  const ChildResult result = run_child(words, launch.options());
  CHECK(result.code == 126);
  CHECK(result.err ==
        "fleetrun: error: disk/run.sh is on a file system that is mounted noexec: no program there can run\n"
        "  hint: copy it to another file system\n");
}

TEST_CASE("W16: a program that the kernel refuses is a failure of its start, once and with a report") {
  const Launch launch;
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string elf(64, '\0');
  self.read(elf.data(), 64);
  elf[18] = elf[19] = '\x7f';  // e_machine: of no machine
  launch.folder.write("foreign", elf);
  // A program whose loader is missing is there, and the kernel says that it is not.
  std::string unloadable = read_all(FAKE_WORKER);
  const auto loader = unloadable.find("/ld-linux");
  REQUIRE(loader != std::string::npos);
  unloadable.replace(loader, 9, "/ld-absnt");
  launch.folder.write("unloadable", unloadable);
  for (const char* name : {"foreign", "unloadable"})
    std::filesystem::permissions(launch.folder / name, std::filesystem::perms::owner_all);
  const ChildResult foreign = launch.run_words({"--nproc_per_node=3", "./foreign"});
  CHECK(foreign.code == 126);
  CHECK(contains(foreign.err,
                 "fleetrun: rank 0 could not be started: ./foreign: Exec format error (errno 8)\n"));
  const ChildResult missing = launch.run_words({"--nproc_per_node=3", "./unloadable"});
  CHECK(missing.code == 127);
  CHECK(
      contains(missing.err,
               "fleetrun: rank 0 could not be started: ./unloadable: No such file or directory (errno 2)\n"));
  CHECK_FALSE(contains(missing.err, "rank 1"));
  CHECK(launch.report()["cause"] == "spawn");
  CHECK(launch.report()["ranks"][2]["role"] == "never_started");
}

TEST_CASE("W16: a missing shared library is told in the loader's words") {
  const Launch launch;
  const ChildResult result = launch.run_words({"--nproc_per_node=2", NEEDS_LIBRARY});
  CHECK(result.code == 127);
  CHECK(contains(result.err, "error while loading shared libraries: libnot_installed.so"));
}

TEST_CASE("W20: a crash loop is seen after three attempts and ends with 93") {
  const Launch launch;
  const ChildResult result = launch.run({"--nproc_per_node=2", "--max_restart=9", "--restart_delay=0.05"},
                                        {"print", "start", "only", "1", "exit", "3"});
  CHECK(result.code == 93);
  CHECK(contains(result.err,
                 "fleetrun: restart 1 of at most 9 in 0.05 s; the logs before it are in log/attempt-0/\n"));
  CHECK(contains(result.err,
                 "fleetrun: restart 2 of at most 9 in 0.1 s; the logs before it are in log/attempt-1/\n"));
  CHECK(contains(result.err, "fleetrun: gave up after 3 attempts: restarting does not help\n"));
  CHECK_FALSE(contains(result.err, "restart 3"));
  const auto report = launch.report();
  CHECK(report["exit_code"] == 93);
  CHECK(report["crash_loop"] == true);
  CHECK(report["ranks"][report["first_failed_rank"].get<int>()]["code"] == 3);
  CHECK(report["ranks"][1]["log"] == "log/workerlog.1");  // of the last attempt
  CHECK(report["last_lines"] == nlohmann::json::array({"start"}));
  CHECK(report["earlier_attempts"].size() == 2);
  for (const char* log : {"log/attempt-0/workerlog.1", "log/attempt-1/workerlog.1", "log/workerlog.1"})
    CHECK(launch.folder.read(log) == "start\n");
}

TEST_CASE("W20: an attempt that goes well ends the restarts, with new ports and the counts of torchrun") {
  const ScriptLaunch launch;
  const ChildResult result =
      launch.run_script({"--nproc_per_node=2", "--max_restart=3", "--restart_delay=0.01"},
                        "echo $MASTER_PORT $TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS\n"
                        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0\n"
                        "[ $RANK = 0 ] && exit 101\nexec $FAKE sleep 100\n");
  CHECK(result.code == 0);
  const std::string first = launch.folder.read("log/attempt-0/workerlog.0");
  const std::string second = launch.folder.read("log/workerlog.0");
  CHECK(contains(first, " 0 of 3\n"));
  CHECK(contains(second, " 1 of 3\n"));
  CHECK(first.substr(0, first.find(' ')) != second.substr(0, second.find(' ')));
  CHECK(contains(result.out, first));
  CHECK(contains(result.out, second));
}

TEST_CASE(
    "W20: Ctrl-C during the pause ends the run at once with 130, and the failure is that of an attempt") {
  const Launch launch;
  ChildProcess process(with_errors_in_a_file(Launch::command({"--max_restart=3", "--restart_delay=100"},
                                                             {"print", "so", "exit", "5"})),
                       launch.options());
  REQUIRE(says(launch, "fleetrun: restart 1 of at most 3 in "));
  REQUIRE(comes_true([&] { return launch.folder.has("log/attempt-0/workerlog.0"); }, within(5s)));
  process.send(SIGINT);
  CHECK(process.wait().code == 130);
  const std::string err = launch.folder.read("err");
  CHECK(err.ends_with("fleetrun: stopped by SIGINT (2)\n"));
  CHECK_FALSE(contains(err, "waiting for the ranks to end"));
  const auto report = launch.report();
  CHECK(report["exit_code"] == 130);
  CHECK(report["cause"] == "stopped");
  CHECK(report["message"] == "stopped by SIGINT (2)");
  CHECK(report["stop_signal"] == SIGINT);
  CHECK(report["first_failed_rank"].is_null());
  CHECK(report["ranks"][0]["code"] == 5);
  CHECK(report["ranks"][0]["log"] == "log/attempt-0/workerlog.0");
  REQUIRE(report["earlier_attempts"].size() == 1);
  CHECK(report["earlier_attempts"][0]["exit_code"] == 5);
  CHECK(launch.folder.read("log/attempt-0/workerlog.0") == "so\n");
}

TEST_CASE("W20: --timeout in the pause ends the run with 124") {
  const Launch launch;
  const ChildResult result =
      launch.run({"--max_restart=3", "--restart_delay=100", "--timeout=0.5"}, {"exit", "5"});
  CHECK(result.code == 124);
  CHECK(result.err.ends_with("fleetrun: --timeout: 0.5 s have passed\n"));
  CHECK(launch.report()["cause"] == "timed_out");
}

TEST_CASE("W21: a rank that not even SIGKILL ends is waited for no longer than was said, and named") {
  const auto group =
      TestCgroup::make("freezer");  // a frozen process is as deaf as one that waits for a device
  if (!group || group->version() != 1 || !group->set("freezer.state", "THAWED"))
    LEAVE_OUT("no freezer of version 1 here to make a process deaf to SIGKILL");
  const Launch launch;
  ChildProcess process(
      Launch::command({"--grace=0.1", "--kill_wait=0.3", "--cgroup=none"}, {"pid", "pid", "sleep", "100"}),
      launch.options());
  const pid_t worker = launch.pid_in("pid");
  REQUIRE(group->set("cgroup.procs", std::to_string(worker)));
  REQUIRE(group->set("freezer.state", "FROZEN"));
  process.send(SIGTERM);
  const ChildResult result = process.wait(within(5s));
  CHECK(result.code == 143);
  CHECK(contains(result.err, "fleetrun: still there after SIGKILL: rank 0\n"));
  CHECK(contains(result.err, "fleetrun: still there after SIGKILL: pid " + std::to_string(worker) + ", "));
  group->set("freezer.state", "THAWED");
  CHECK(gone(worker, 1s));
}

TEST_CASE("W22: a rank that leaves its process group, or runs in a new session, is ended all the same") {
  const Launch launch;
  for (const Words& worker : {Words{"leave-group", "pid", "pid", "ignore-term", "sleep", "100"},
                              Words{"daemon", "pid", "ignore-term", "sleep", "100"}}) {
    ChildProcess process(Launch::command({"--grace=0.1"}, worker), launch.options());
    const pid_t pid = launch.pid_in("pid");
    process.send(SIGTERM);
    CHECK(process.wait().code == 143);
    CHECK_FALSE(is_alive(pid));
    std::filesystem::remove(launch.folder / "pid");
  }
}

TEST_CASE("W23: a rank without standard descriptors, or one that floods its log, disturbs nobody") {
  const Launch launch;
  CHECK(launch.run({}, {"close", "sleep", "0.05", "exit", "6"}).code == 6);
  const ScriptLaunch flood;
  ChildProcess process(flood.script_command({"--nproc_per_node=2"},
                                            "$FAKE ready up.$RANK\n"
                                            "while :; do $FAKE flood 1000000; done\n"),
                       flood.options());
  flood.pid_in("up.0");
  const auto start = std::chrono::steady_clock::now();
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  CHECK(std::chrono::steady_clock::now() - start < within(2s));
}

}  // namespace
}  // namespace fleetrun::worker_fault_test
