// What happens when something goes wrong: who is named, what is left, which code comes back.
#include "e2e/launcher.h"

namespace fleetrun {
namespace {

constexpr auto kNothingLeft = 1s;  // promised: after the end of a run, or of the front process

TEST_CASE("the code of the first failed rank comes back, and the report names it") {
  const Launch launch;
  const ChildResult result = launch.run({"--nproc_per_node=3"}, {"print", "working", "only", "1", "sleep",
                                                                 "0.1", "print", "oh no", "exit", "3"});
  CHECK(result.code == 3);
  CHECK(contains(
      result.err,
      " fleetrun] ABORT!!! Out of all 3 trainers, the trainer process with rank=[1] was aborted. Please "
      "check its log.\n"));
  CHECK(contains(result.err, "fleetrun: rank 1 exited with code 3 (pid "));
  CHECK(contains(result.err, "fleetrun: the last lines of log/workerlog.1:\n    working\n    oh no\n"));
  const auto report = launch.report();
  CHECK(report["cause"] == "exited");
  CHECK(report["exit_code"] == 3);
  CHECK(report["first_failed_rank"] == 1);
  CHECK(report["ranks"][1]["role"] == "primary");
  CHECK(report["last_lines"].back() == "oh no");
}

TEST_CASE("ranks that still run are stopped and not blamed") {
  const Launch launch;
  launch.folder.write("worker.sh", "#!/bin/sh\n[ $RANK = 1 ] && exit 7\nexec sleep 100\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=3", "/bin/sh", "worker.sh"});
  CHECK(result.code == 7);
  CHECK(result.seconds < 5);
  CHECK(contains(result.err, "fleetrun: stopped by fleetrun: ranks 0, 2\n"));
  CHECK(launch.report()["ranks"][0]["role"] == "stopped");
  CHECK(launch.report()["ranks"][0]["signal"] == SIGTERM);
}

TEST_CASE("a rank that is killed gives 137 at once, is named, and nothing stays") {
  const Launch launch;
  ChildProcess process(Launch::command({"--nproc_per_node=2"}, {"pid", "pid.%r", "sleep", "100"}),
                       launch.options());
  const pid_t other = launch.pid_in("pid.0");
  ::kill(launch.pid_in("pid.1"), SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  const ChildResult result = process.wait();
  CHECK(std::chrono::steady_clock::now() - start < 1s);
  CHECK(result.code == 137);
  CHECK(contains(result.err, "fleetrun: rank 1 was killed by SIGKILL (9), not by fleetrun"));
  CHECK_FALSE(is_alive(other));
  CHECK(launch.report()["cause"] == "killed");
}

TEST_CASE("every way to die has its code") {
  const Launch launch;
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM})
    CHECK(launch.run({}, {"signal", std::to_string(number)}).code == 128 + number);
}

TEST_CASE("codes of a worker are passed on exactly") {
  const Launch launch;
  const std::vector<int> codes = {0,  1,  2,  3,  9,   64,  65,  66,  70,  71,  73,  74,  75,  76,  77,  78,
                                  80, 81, 93, 99, 101, 102, 124, 126, 127, 128, 129, 130, 137, 143, 254, 255};
  for (const int code : codes) {
    const int got = launch.run({}, {"exit", std::to_string(code)}).code;
    CHECK_MESSAGE(got == code, got);
  }
}

TEST_CASE("a worker that ignores SIGTERM is killed when the grace is over") {
  const Launch launch;
  const ChildResult result =
      launch.run({"--nproc_per_node=2", "--grace=0.5"},
                 {"ignore-term", "child", "ready", "up.%r", "only", "1", "sleep", "0.2", "exit", "3"});
  CHECK(result.code == 3);
  launch.folder.write(
      "worker.sh",
      "#!/bin/sh\n[ $RANK = 1 ] && sleep 0.2 && exit 4\ntrap '' TERM\nwhile :; do sleep 1; done\n");
  const ChildResult stubborn =
      launch.run_words({"--nproc_per_node=2", "--grace=0.5", "/bin/sh", "worker.sh"});
  CHECK(stubborn.code == 4);
  CHECK(stubborn.seconds > 0.6);
  CHECK(stubborn.seconds < 5);
  CHECK(launch.report()["ranks"][0]["signal"] == SIGKILL);
}

TEST_CASE("a worker that cleans up at SIGTERM has the time for it") {
  const Launch launch;
  ChildProcess process(Launch::command({}, {"on-term", "9", "ready", "up", "sleep", "100"}),
                       launch.options());
  launch.pid_in("up");
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(contains(result.err, "fleetrun: rank 0 exited with code 9 after it was told to stop\n"));
}

TEST_CASE("when the front process is killed no worker stays, nor any child of one") {
  const Launch launch;
  ChildProcess process(Launch::command({"--nproc_per_node=2"}, {"ignore-term", "daemon", "daemon.%r", "pid",
                                                                "pid.%r", "sleep", "100"}),
                       launch.options());
  std::vector<pid_t> pids;
  for (const char* name : {"pid.0", "pid.1", "daemon.0", "daemon.1"}) pids.push_back(launch.pid_in(name));
  process.send(SIGKILL);
  for (const pid_t pid : pids) CHECK(comes_true([&] { return !is_alive(pid); }, kNothingLeft));
  CHECK(comes_true([&] { return launch.folder.has("log/report.json"); }, kNothingLeft));
  CHECK(launch.report()["cause"] == "front_lost");
}

TEST_CASE("when the middle process is killed no worker stays either, and the front says so") {
  const Launch launch;
  ChildProcess process(Launch::command({}, {"ignore-term", "daemon", "daemon", "pid", "pid", "sleep", "100"}),
                       launch.options());
  const pid_t worker = launch.pid_in("pid");
  const pid_t daemon = launch.pid_in("daemon");
  std::ifstream stat("/proc/" + std::to_string(worker) + "/stat");
  std::string number, name, state;
  pid_t middle = 0;
  stat >> number >> name >> state >> middle;
  REQUIRE(middle > 1);
  ::kill(middle, SIGKILL);
  const ChildResult result = process.wait();
  CHECK(result.code == 137);
  CHECK(contains(result.err, "the supervising process was killed by SIGKILL (9)"));
  CHECK_FALSE(is_alive(worker));
  CHECK_FALSE(is_alive(daemon));
}

TEST_CASE("a daemon that a worker leaves behind ends with the run") {
  const Launch launch;
  const ChildResult result =
      launch.run({"--nproc_per_node=2"}, {"daemon", "daemon.%r", "child", "sleep", "0.3"});
  CHECK(result.code == 0);
  CHECK(result.seconds < 3);
  CHECK_FALSE(is_alive(launch.pid_in("daemon.0")));
  CHECK_FALSE(is_alive(launch.pid_in("daemon.1")));
}

TEST_CASE("Ctrl-C once waits for the ranks, twice does not") {
  const Launch launch;
  SUBCASE("once") {
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
    CHECK(launch.report()["cause"] == "stopped");
    CHECK(launch.report()["stop_signal"] == SIGINT);
  }
  SUBCASE("twice") {
    ChildProcess process(Launch::command({}, {"ignore-term", "pid", "pid", "sleep", "100"}),
                         launch.options());
    const pid_t worker = launch.pid_in("pid");
    process.send(SIGINT);
    CHECK_FALSE(comes_true([&] { return !is_alive(worker); }, 300ms));
    process.send(SIGINT);
    const auto start = std::chrono::steady_clock::now();
    CHECK(process.wait().code == 130);
    CHECK(std::chrono::steady_clock::now() - start < 1s);
  }
}

TEST_CASE("each signal that ends a run has its code") {
  const Launch launch;
  for (const int number : {SIGTERM, SIGHUP}) {
    ChildProcess process(Launch::command({}, {"ready", "up", "sleep", "100"}), launch.options());
    launch.pid_in("up");
    process.send(number);
    CHECK(process.wait().code == 128 + number);
    std::filesystem::remove(launch.folder / "up");
  }
}

TEST_CASE("a program that cannot run is said once, and nothing is made") {
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

TEST_CASE("a program that the kernel refuses is a failure of its start, with a report") {
  const Launch launch;
  launch.folder.write("script", "#!/no/such/interpreter\n");
  std::filesystem::permissions(launch.folder / "script", std::filesystem::perms::owner_all);
  const ChildResult result = launch.run_words({"--nproc_per_node=3", "./script"});
  CHECK(result.code == 127);
  CHECK(contains(result.err,
                 "fleetrun: rank 0 could not be started: ./script: No such file or directory (errno 2)\n"));
  CHECK(launch.report()["cause"] == "spawn");
  CHECK(launch.report()["ranks"][2]["role"] == "never_started");
}

TEST_CASE("a bad command line is code 2") {
  const Launch launch;
  CHECK(launch.run_words({"--nproc=2", "true"}).code == 2);
  CHECK(launch.run_words({}).code == 2);
  CHECK(launch.run_words({"--gpus=0", "--device=cuda", "true"}).code != 0);
}

TEST_CASE("logs that cannot be written are code 73 before any rank starts") {
  const Launch launch;
  launch.folder.write("log", "a file in the way");
  const ChildResult result = launch.run({}, {"ready", "started"});
  CHECK(result.code == 73);
  CHECK(contains(result.err, "log"));
  CHECK_FALSE(launch.folder.has("started"));
}

TEST_CASE("two runs in one folder do not mix") {
  const Launch launch;
  ChildProcess first(Launch::command({}, {"ready", "up", "on-term", "0", "print", "first", "sleep", "100"}),
                     launch.options());
  launch.pid_in("up");
  const ChildResult second = launch.run({}, {"print", "second"});
  CHECK(second.code == 73);
  CHECK(contains(second.err, "log/ is in use by fleetrun, pid "));
  CHECK(launch.run({"--log_dir=other"}, {"print", "third"}).code == 0);
  first.send(SIGTERM);
  CHECK(first.wait().code == 143);
  CHECK(launch.folder.read("log/workerlog.0") == "first\n");
  CHECK(launch.run({}, {"print", "again"}).code == 0);
}

TEST_CASE("a bad job file makes no process and no file") {
  const Launch launch;
  launch.folder.write("job.json", "{");
  const ChildResult result = launch.run_words({"job.json"});
  CHECK(result.code == 78);
  CHECK(contains(result.err, "job.json"));
  CHECK(launch.run_words({"missing.json"}).code == 66);
  CHECK_FALSE(launch.folder.has("log"));
}

}  // namespace
}  // namespace fleetrun
