// W7 to W11, W21 to W23: ranks that do not end by themselves, and the processes that they leave.
#include "e2e/faults/faults.h"

namespace fleetrun::left_process_fault_test {
namespace {

TEST_CASE("W7: a rank that ignores SIGTERM is killed when the grace is over") {
  const ScriptLaunch launch;
  const ChildResult result = launch.run_script(
      {"--nproc_per_node=2", "--grace=0.3"},
      "[ $RANK = 1 ] && exec $FAKE sleep 0.1 exit 4\ntrap '' TERM\nwhile :; do sleep 1; done\n");
  CHECK(result.code == 4);
  CHECK(result.seconds > 0.35);
  CHECK(result.seconds < seconds_within(1400ms));
  CHECK(launch.report()["ranks"][0]["signal"] == SIGKILL);
  CHECK(contains(result.err, "s after it had asked it to end: rank 0\n"));
}

TEST_CASE(
    "hunt 4: that the program of a shell script had to be killed is said, and `ps` shows that it ends") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({"--grace=60"},
                                             "sh -c 'trap : TERM; echo $$ > up.new && mv up.new up; "
                                             "while :; do sleep 0.02; done'\necho end\n"),
                       launch.options());
  const pid_t shell = parent_of(launch.pid_in("up"));
  process.send(SIGTERM);
  REQUIRE(comes_true([&] { return state_of(shell) == 'Z'; }, 5s));
  CHECK(comes_true([&] { return contains(launch.run_words({"ps"}).out, "program is ending"); }, within(5s)));
  process.send(SIGINT);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(contains(result.err, "s after it had asked it to end: rank 0\n"));
  CHECK(launch.report()["ranks"][0]["killed_by_fleetrun"] == true);
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

// A shell that ends at SIGTERM, and its program, which has a handler.
std::string wrapper_of(const std::string& handler, const std::string& reader) {
  return "sh -c 'trap \"" + handler +
         "\" TERM; echo $$ > up.new && mv up.new up; while :; do sleep 0.02; done'" + reader + "\necho end\n";
}

TEST_CASE("hunt 1: the program of a shell script has the grace, also with a pipe") {
  for (const std::string& reader : {std::string(), kReader}) {
    const ScriptLaunch launch;
    ChildProcess process(launch.script_command({}, wrapper_of("sleep 0.3; echo saved; exit 0", reader)),
                         launch.options());
    const pid_t program = launch.pid_in("up");
    if (!reader.empty()) launch.pid_in("reader");
    process.send(SIGTERM);
    const ChildResult result = process.wait();
    CHECK(result.code == 143);
    CHECK(contains(launch.folder.read("log/workerlog.0"), "saved\n"));
    CHECK(result.seconds < seconds_within(2s));
    CHECK_FALSE(is_alive(program));
  }
}

TEST_CASE(
    "hunt 6: whoever signals all processes, ranks first, stops the run, and the programs have the grace") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({"--nproc_per_node=2", "--max_restart=1"},
                                             "sh -c 'trap \"sleep 1.5; echo saved; exit 0\" TERM; "
                                             "echo $$ > up.new.$RANK && mv up.new.$RANK up.$RANK; "
                                             "while :; do sleep 0.02; done'\necho end\n"),
                       launch.options());
  const std::vector<pid_t> programs = {launch.pid_in("up.0"), launch.pid_in("up.1")};
  for (const pid_t program : programs) ::kill(parent_of(program), SIGTERM);
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK_MESSAGE(launch.report()["cause"] == "stopped", result.err);
  for (const char* log : {"log/workerlog.0", "log/workerlog.1"})
    CHECK(contains(launch.folder.read(log), "saved\n"));
}

TEST_CASE("hunt 6: somebody else ends the shell of a rank with SIGTERM, and its program has the grace") {
  const ScriptLaunch launch;
  ChildProcess process(launch.script_command({},
                                             "sh -c 'trap \"sleep 1.5; echo saved; exit 0\" TERM; "
                                             "echo $$ > up.new && mv up.new up; "
                                             "while :; do sleep 0.02; done'\necho end\n"),
                       launch.options());
  ::kill(parent_of(launch.pid_in("up")), SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(launch.report()["cause"] == "killed");
  CHECK(contains(launch.folder.read("log/workerlog.0"), "saved\n"));
}

TEST_CASE("hunt 4: a program in another process group than its shell has the grace, too") {
  const std::string program =
      "sh -c 'trap \"sleep 1.5; echo saved; exit 0\" TERM; echo $$ > up.new && mv up.new up; "
      "while :; do sleep 0.02; done'\necho end\n";
  for (const char* start : {"timeout 100 ", "set -m\n"}) {
    const ScriptLaunch launch;
    ChildProcess process(launch.script_command({}, start + program), launch.options());
    const pid_t pid = launch.pid_in("up");
    process.send(SIGTERM);
    CHECK(process.wait().code == 143);
    CHECK_MESSAGE(contains(launch.folder.read("log/workerlog.0"), "saved\n"), start);
    CHECK_FALSE(is_alive(pid));
  }
}

TEST_CASE("a child in a session of its own does not hold up the end of its rank") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const ScriptLaunch launch;
  launch.folder.write("train.py",
                      "import os, subprocess, sys, time\n"
                      "code = 'import os, signal, time; signal.signal(15, lambda *_: os._exit(0)); "
                      "os.rename(\"up.new\", \"up\"); time.sleep(100)'\n"
                      "open('up.new', 'w').write(str(os.getpid()))\n"
                      "subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
                      "time.sleep(100)\n");
  ChildProcess process(launch.script_command({"--grace=60"}, "python3 train.py\necho end\n"),
                       launch.options());
  launch.pid_in("up");
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(result.seconds < seconds_within(10s));
}

TEST_CASE("the last words of a rank arrive through a pipe, whatever its exit code") {
  for (const int code : {3, 130, 143}) {
    const ScriptLaunch launch;
    launch.folder.write("slow.sh", "while read -r line; do sleep 0.02; echo \"$line\"; done\n");
    launch.folder.write("rank.sh",
                        "exec > >(bash slow.sh) 2>&1\necho last words\nexit " + std::to_string(code) + "\n");
    const ChildResult result = launch.run_script({}, "exec bash rank.sh\n");
    CHECK(result.code == code);
    CHECK_MESSAGE(contains(result.err, "    last words\n"), code);
  }
}

TEST_CASE("hunt 1: a program that takes back its handler while it saves is left alone") {
  for (const char* second : {"trap - TERM", "trap \\\"\\\" TERM"}) {
    const ScriptLaunch launch;
    const std::string handler = std::string(second) + "; sleep 0.4; echo saved; exit 0";
    ChildProcess process(launch.script_command({}, wrapper_of(handler, kReader)), launch.options());
    launch.pid_in("up");
    launch.pid_in("reader");
    process.send(SIGTERM);
    CHECK(process.wait().code == 143);
    CHECK_MESSAGE(contains(launch.folder.read("log/workerlog.0"), "saved\n"),
                  launch.folder.read("log/workerlog.0"));
  }
}

TEST_CASE("hunt 1: what ignores SIGTERM below a rank that has ended does not use up the grace") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command(
          {"--grace=60"}, "sh -c 'trap \"\" TERM; echo $$ > up.new && mv up.new up; sleep 100'\necho end\n"),
      launch.options());
  const pid_t helper = launch.pid_in("up");
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(result.seconds > 0.9);
  CHECK(result.seconds < seconds_within(1900ms));  // it had its second, and gets no other one
  CHECK_FALSE(is_alive(helper));
}

TEST_CASE(
    "hunt 13: the first Ctrl-C after a failure says that the next one kills, also if only a program is left") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command(
          {"--nproc_per_node=2", "--grace=60"},
          "[ $RANK = 1 ] && { $FAKE await go; exit 3; }\n"
          "sh -c 'trap : TERM; echo $$ > up.new && mv up.new up; while :; do sleep 0.02; done'\necho end\n"),
      launch.options());
  const pid_t shell = parent_of(launch.pid_in("up"));
  launch.folder.write("go", "");
  REQUIRE(comes_true([&] { return state_of(shell) == 'Z'; }, 5s));
  process.send(SIGINT);
  CHECK_FALSE(comes_true([&] { return !is_alive(launch.pid_in("up")); },
                         1100ms));  // in which another SIGINT is the same
  process.send(SIGINT);
  const ChildResult result = process.wait();
  CHECK(result.code == 3);
  CHECK_MESSAGE(contains(result.err + result.out, "waiting for the ranks to end; Ctrl-C kills them now"),
                result.err);
}

TEST_CASE("hunt 1: Ctrl-C during a stop does not wait for the program of a shell script") {
  const ScriptLaunch launch;
  const std::string script =
      "sh -c 'trap : TERM; echo $$ > up.new && mv up.new up; while :; do sleep 1; done'\necho end\n";
  ChildProcess process(launch.script_command({"--grace=60"}, script), launch.options());
  const pid_t program = launch.pid_in("up"), shell = parent_of(program);
  process.send(SIGTERM);
  REQUIRE(comes_true([&] { return state_of(shell) == 'Z'; }, 5s));
  CHECK_FALSE(
      comes_true([&] { return !is_alive(program); }, 1100ms));  // in which a SIGINT asks for nothing new
  process.send(SIGINT);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(result.seconds < seconds_within(5s));
  CHECK_FALSE(is_alive(program));
}

TEST_CASE("hunt 1: what a rank leaves behind has a moment to clean up") {
  for (const char* way : {"exit 0", "kill -SEGV $$"}) {
    const ScriptLaunch launch;
    const std::string script =
        "sh -c 'trap \"sleep 0.1; echo removed > removed; exit\" TERM; echo > up; while :; do sleep 0.02; done' &\n"
        "until [ -e up ]; do sleep 0.02; done\n";
    const ChildResult result = launch.run_script({}, script + way + "\n");
    CHECK(launch.folder.read("removed") == "removed\n");
    CHECK(result.seconds < seconds_within(2s));
  }
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
    CHECK(result.seconds < seconds_within(1700ms));
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
  CHECK(result.seconds < seconds_within(1700ms));
  CHECK(contains(result.out, "the end\n"));
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

// Tells each signal that it gets, and saves at SIGTERM.
const char* const kSaving =
    "sh -c 'trap \"echo got USR1; exit 0\" USR1; trap \"sleep 0.3; echo saved; exit 0\" TERM; echo $$ > up.new && "
    "mv up.new up; while :; do sleep 0.02; done'";

TEST_CASE("hunt 150: the program of a shell with a trap for SIGTERM gets the signal, and the trap runs") {
  const auto write_inner = [](const std::string& text) {
    return "cat > inner.sh <<'END'\n" + text + "END\n";
  };
  const std::string trap = "trap 'echo cleaned' TERM\n", program = std::string(kSaving) + "\n";
  const std::string trapped = trap + program + "echo end\n", inner = write_inner(trapped);
  for (const std::string& script :
       {trapped, inner + "exec bash inner.sh\n", inner + "sh inner.sh\necho outer\n",
        inner + "bash inner.sh\necho outer\n",
        write_inner(program + ":\n") + trap + "bash inner.sh\necho end\n"}) {
    CAPTURE(script);
    const ScriptLaunch launch;
    ChildProcess process(launch.script_command({"--grace=60"}, script), launch.options());
    launch.pid_in("up");
    process.send(SIGTERM);
    const ChildResult result = process.wait();
    CHECK(result.code == 143);
    CHECK(result.seconds < seconds_within(10s));
    CHECK(contains(launch.folder.read("log/workerlog.0"), "saved\ncleaned\nend\n"));
  }
}

TEST_CASE("hunt 150: a shell that waits for its program with `wait` passes on the signal that it chooses") {
  for (const char* const shell : {"sh", "bash"}) {
    const ScriptLaunch launch;
    launch.folder.write("wrapper.sh",
                        std::string("trap 'kill -USR1 $!; wait $!; exit 5' TERM\n") + kSaving + " &\nwait\n");
    ChildProcess process(launch.script_command({}, std::string("exec ") + shell + " wrapper.sh\n"),
                         launch.options());
    launch.pid_in("up");
    process.send(SIGTERM);
    CHECK(process.wait().code == 143);
    CHECK(launch.folder.read("log/workerlog.0") == "got USR1\n");
  }
}

TEST_CASE("hunt 153: the program of a bash script with a trap for EXIT gets one SIGTERM") {
  const ScriptLaunch launch;
  launch.folder.write("program.sh",
                      "trap 'echo got >> got' TERM\necho up > up\nuntil [ -e got ]; do sleep 0.02; done\n"
                      "sleep 0.5; sleep 0.5\n");
  launch.folder.write("rank.sh", "trap 'echo cleaned' EXIT\nsh program.sh\n");
  ChildProcess process(launch.script_command({}, "exec bash rank.sh\n"), launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("up"); }, within(5s)));
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  CHECK(launch.folder.read("got") == "got\n");
}

TEST_CASE("hunt 150: what the trap of a shell starts gets no signal") {
  const ScriptLaunch launch;
  ChildProcess process(
      launch.script_command({},
                            "trap 'sleep 0.7 && echo saved; exit 5' TERM\n"
                            "echo $$ > up.new && mv up.new up\nwhile :; do sleep 0.02; done\n"),
      launch.options());
  launch.pid_in("up");
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  CHECK(contains(launch.folder.read("log/workerlog.0"), "saved\n"));
}

}  // namespace
}  // namespace fleetrun::left_process_fault_test
