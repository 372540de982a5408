// W20: failures that restart the ranks.
#include "e2e/faults/faults.h"

namespace fleetrun::restart_fault_test {
namespace {

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

TEST_CASE("W20: a restart that is older than --restart_window does not count") {
  const Launch launch;
  const ChildResult result =
      launch.run({"--max_restart=1", "--restart_window=0.3", "--restart_delay=0.5"}, {"exit", "3"});
  CHECK(result.code == 93);
  CHECK(contains(result.err, "fleetrun: restart 2 (at most 1 in 0.3 s) in 1 s; "));
  CHECK(contains(result.err, "fleetrun: gave up after 3 attempts: restarting does not help\n"));
  const ChildResult whole = launch.run({"--max_restart=1", "--restart_delay=0.5"}, {"exit", "3"});
  CHECK_FALSE(contains(whole.err, "restart 2"));
}

TEST_CASE("W20: a restart needs no working folder, also where --log_dir is relative to it") {
  const Launch launch;
  std::filesystem::create_directory(launch.folder / "work");
  launch.folder.write("fail.sh",
                      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && echo $PADDLE_LOG_DIR && exit 0\n"
                      "rmdir ../work\nexit 3\n");
  const ChildResult result = run_child({FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=0.01",
                                        "--log_dir=../logs", "/bin/sh", launch.folder / "fail.sh"},
                                       {.folder = launch.folder / "work"});
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(contains(launch.folder.read("logs/workerlog.0"), launch.folder.path() + "/logs\n"));
}

TEST_CASE("W20: after an exit code of --no_restart_on the run ends with that code") {
  const Launch launch;
  const ChildResult result = launch.run({"--max_restart=9", "--no_restart_on=4,5"}, {"exit", "5"});
  CHECK(result.code == 5);
  CHECK_FALSE(contains(result.err, "restart 1"));
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

}  // namespace
}  // namespace fleetrun::restart_fault_test
