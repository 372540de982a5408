#include "launch/report/report.h"

#include <cerrno>
#include <csignal>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "launch/report/utc_time.h"

namespace fleetrun::launch::report_test {
namespace {

Moment moment_at(std::chrono::milliseconds time) {
  return {std::chrono::system_clock::time_point(std::chrono::milliseconds(1611067852007)) + time,
          TimePoint(std::chrono::hours(1) + time)};
}

ExitReport report_of(int ranks) {
  ExitReport report;
  report.run_id = "run-1";
  report.job_id = "mine";
  report.host = "node-a";
  report.command = {"train", "--name", "a b"};
  report.started = moment_at(std::chrono::milliseconds(0));
  report.ended = moment_at(std::chrono::milliseconds(1500));
  for (int i = 0; i < ranks; ++i) {
    report.logs.push_back("log/workerlog." + std::to_string(i));
    report.workers.push_back({100 + i, report.started, moment_at(std::chrono::milliseconds(1250))});
    report.verdict.ranks.push_back({Role::finished, ExitStatus{}, {}});
  }
  return report;
}

ExitReport failed_report() {
  ExitReport report = report_of(4);
  report.verdict.cause = Cause::killed;
  report.verdict.rank = 1;
  report.verdict.exit_code = 137;
  report.verdict.ranks[0] = {Role::stopped, ExitStatus{ExitStatus::How::signaled, SIGTERM}, {}};
  report.verdict.ranks[1] = {Role::cause, ExitStatus{ExitStatus::How::signaled, SIGKILL}, {}};
  report.verdict.ranks[2] = {Role::failed_after, ExitStatus{ExitStatus::How::exited, 9}, {}};
  report.last_lines = {"almost", "there"};
  return report;
}

TEST_CASE("when all went well there is nothing to say") { CHECK(describe(report_of(2)).empty()); }

TEST_CASE("a failure is reported in one block: who, how, where, what it said, who was stopped") {
  CHECK(describe(failed_report()) ==
        "fleetrun: rank 1 was killed by SIGKILL (9), not by fleetrun (pid 101 on node-a, after 1.2 s)\n"
        "fleetrun: it ran: train --name 'a b'\n"
        "fleetrun: the last lines of log/workerlog.1:\n"
        "    almost\n"
        "    there\n"
        "fleetrun: finished with 0 before: rank 3\n"
        "fleetrun: rank 2 exited with code 9 after fleetrun asked it to stop\n"
        "fleetrun: stopped by fleetrun: rank 0\n");
}

TEST_CASE("ranks that fleetrun had to kill are named, with the time that they had") {
  ExitReport report = report_of(4);
  report.verdict.cause = Cause::stopped;
  report.verdict.signal = SIGTERM;
  for (std::size_t rank : {0, 2}) {
    report.verdict.ranks[rank] = {.role = Role::stopped, .status = {}, .ended = {}, .killed = true};
    report.verdict.ranks[rank].status = ExitStatus{ExitStatus::How::signaled, SIGKILL};
  }
  report.verdict.asked_to_end = TimePoint(std::chrono::seconds(1));
  report.verdict.killed = TimePoint(std::chrono::milliseconds(11500));
  CHECK(describe(report) ==
        "fleetrun: stopped by SIGTERM (15)\n"
        "fleetrun: stopped by fleetrun: ranks 0, 2\n"
        "fleetrun: killed by fleetrun 10.5 s after it had asked them to end: ranks 0, 2\n");
  const auto ranks = nlohmann::json::parse(report_json(report))["ranks"];
  CHECK(ranks[2]["killed_by_fleetrun"] == true);
  CHECK_FALSE(ranks[1].contains("killed_by_fleetrun"));
}

TEST_CASE("an error that the console has shown is not shown again") {
  ExitReport report = failed_report();
  report.error_was_shown = true;
  CHECK(describe(report).find("fleetrun: it ran: train --name 'a b'\n"
                              "fleetrun: the error is above; log/workerlog.1 has all that the rank wrote\n"
                              "fleetrun: finished with 0 before: rank 3\n"
                              "fleetrun: rank 2 ") != std::string::npos);
  report.log_disk_full = true;
  CHECK(describe(report).find("fleetrun: the error is above\nfleetrun: finished with 0 before: rank 3\n") !=
        std::string::npos);
}

TEST_CASE("row 'signal KILL --rank 1': who had the signal sent through us is said") {
  ExitReport report = failed_report();
  report.verdict.origin = "process 4711 sent with fleetrun signal";
  CHECK(describe_failure(report) ==
        "rank 1 was killed by SIGKILL (9), which process 4711 sent with fleetrun signal");
}

TEST_CASE("row 'wall clock set back': how long something took comes from the steady clock") {
  ExitReport report = failed_report();
  for (Moment* moment : {&report.ended, &report.workers[1].ended}) moment->wall -= std::chrono::hours(1);
  CHECK(describe(report).find(", after 1.2 s)") != std::string::npos);
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["seconds"] == 1.5);
  CHECK(json["ended"] == "2021-01-19T13:50:53.507Z");
}

TEST_CASE("hunt 17: a time before 1970 has milliseconds like any other") {
  using std::chrono::milliseconds;
  CHECK(utc_time(std::chrono::system_clock::time_point(milliseconds(-1))) == "1969-12-31T23:59:59.999Z");
  CHECK(utc_time(std::chrono::system_clock::time_point(milliseconds(-315619198996))) ==
        "1960-01-01T00:00:01.004Z");
  CHECK(utc_time(std::chrono::system_clock::time_point(milliseconds(7))) == "1970-01-01T00:00:00.007Z");
}

TEST_CASE("a rank that said nothing has an empty log") {
  ExitReport report = failed_report();
  report.last_lines.clear();
  CHECK(describe(report).find("fleetrun: log/workerlog.1 is empty\n") != std::string::npos);
}

TEST_CASE("a log that cannot be read is not called empty") {
  ExitReport report = failed_report();
  report.last_lines.clear();
  report.log_problem = ENOTCONN;
  CHECK(describe(report).find(
            "fleetrun: log/workerlog.1 cannot be read: Transport endpoint is not connected") !=
        std::string::npos);
}

TEST_CASE("a start that fails names program and reason, and no log") {
  ExitReport report = report_of(2);
  report.verdict.cause = Cause::spawn;
  report.verdict.rank = 1;
  report.verdict.spawn_error = EAGAIN;
  report.workers[1].pid = -1;
  CHECK(describe(report) ==
        "fleetrun: rank 1 could not be started: train: Resource temporarily unavailable (errno 11)\n");
}

TEST_CASE("what resisted SIGKILL is named") {
  ExitReport report = report_of(2);
  report.verdict.cause = Cause::stopped;
  report.verdict.signal = SIGTERM;
  report.verdict.ranks[1] = {Role::running, {}, {}};
  report.survivors = {"pid 4711, waiting for a device (D)"};
  CHECK(describe(report) ==
        "fleetrun: stopped by SIGTERM (15)\n"
        "fleetrun: still there after SIGKILL: rank 1\n"
        "fleetrun: still there after SIGKILL: pid 4711, waiting for a device (D)\n");
}

TEST_CASE("the report for programs has the same facts") {
  const auto json = nlohmann::json::parse(report_json(failed_report()));
  CHECK(json["cause"] == "killed");
  CHECK(json["message"] == "rank 1 was killed by SIGKILL (9), not by fleetrun");
  CHECK(json["exit_code"] == 137);
  CHECK(json["first_failed_rank"] == 1);
  CHECK(json["started"] == "2021-01-19T14:50:52.007Z");
  CHECK(json["seconds"] == 1.5);
  CHECK(json["last_lines"] == nlohmann::json({"almost", "there"}));
  CHECK(json["ranks"][1]["role"] == "primary");
  CHECK(json["ranks"][1]["signal"] == 9);
  CHECK(json["ranks"][2]["role"] == "failed_after");
  CHECK(json["ranks"][2]["code"] == 9);
  CHECK(json["ranks"][3]["role"] == "finished");
}

TEST_CASE("a run that was stopped on another node has the same cause and signal here") {
  ExitReport report = report_of(2);
  report.verdict.cause = Cause::elsewhere;
  report.whole = WholeRun{.cause = "stopped",
                          .message = "stopped by SIGINT (2) on node 1 (10.0.0.2)",
                          .block = {},
                          .exit_code = 130,
                          .stop_signal = SIGINT,
                          .rank = {},
                          .evidence = {},
                          .ranks = {},
                          .roll_call = {}};
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["cause"] == "stopped");
  CHECK(json["stop_signal"] == SIGINT);
}

TEST_CASE("an error of ours is a report, too") {
  ExitReport report;
  report.error = "port 6170 cannot be held";
  report.verdict.exit_code = 75;
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["cause"] == "error");
  CHECK(json["message"] == "port 6170 cannot be held");
  CHECK(json["exit_code"] == 75);
}

TEST_CASE("the worker's own report is taken over, or its state told") {
  ExitReport report = report_of(1);
  report.train = R"({"accuracy": 0.5})";
  CHECK(nlohmann::json::parse(report_json(report))["train"]["accuracy"] == 0.5);
  report.train = "{";
  CHECK(nlohmann::json::parse(report_json(report))["train"] == "train.json is not valid JSON");
}

TEST_CASE("text that is not UTF-8 does not spoil the report") {
  ExitReport report = failed_report();
  report.last_lines = {"\xff\xfe"};
  CHECK(nlohmann::json::accept(report_json(report)));
}

TEST_CASE("what is known beyond the exit status stands beside it, for people and programs") {
  ExitReport report = failed_report();
  report.evidence = {.out_of_memory = true,
                     .exception = "MemoryError",
                     .exception_place = "train.py:3, in main",
                     .facts = {"out of memory: limit 64 MiB"}};
  CHECK(describe(report).find("fleetrun: MemoryError (train.py:3, in main)\n"
                              "fleetrun: out of memory: limit 64 MiB\n"
                              "fleetrun: the last lines of") != std::string::npos);
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["cause"] == "oom");
  CHECK(
      json["message"] ==
      "rank 1 was killed by SIGKILL (9), not by fleetrun, out of memory: MemoryError (train.py:3, in main)");
  CHECK(json["exception"] == "MemoryError (train.py:3, in main)");
  CHECK(json["evidence"][0] == "out of memory: limit 64 MiB");
}

TEST_CASE("earlier attempts and a crash loop are reported") {
  ExitReport report = failed_report();
  report.verdict.attempt = 1;
  report.verdict.crash_loop = true;
  report.attempts = {{.message = "rank 0 exited with code 3", .exit_code = 3, .logs = "log/attempt-0"}};
  CHECK(describe(report).find("fleetrun: gave up after 2 attempts: restarting does not help\n") !=
        std::string::npos);
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["crash_loop"] == true);
  CHECK(json["earlier_attempts"][0]["message"] == "rank 0 exited with code 3");
  CHECK(json["earlier_attempts"][0]["logs"] == "log/attempt-0");
}

TEST_CASE("hunt 144: the report names the signal that prevented a restart") {
  ExitReport report = failed_report();
  report.verdict.restart_stopped_by = SIGTERM;
  CHECK(describe(report).find("fleetrun: no restart, because of SIGTERM (15) while the ranks ended\n") !=
        std::string::npos);
  CHECK(nlohmann::json::parse(report_json(report))["restart_stopped_by"] == SIGTERM);
  CHECK(nlohmann::json::parse(report_json(failed_report()))["restart_stopped_by"].is_null());
}

TEST_CASE("hunt 145: a successful run reports the lines that could not be written to a log") {
  ExitReport report = report_of(2);
  report.lost_lines = {.rank = 1, .last_lines = {"trained 40 epochs"}};
  CHECK(describe(report) ==
        "fleetrun: the last lines of rank 1 that could not be written to its log:\n    trained 40 epochs\n");
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["lost_lines"]["rank"] == 1);
  CHECK(json["lost_lines"]["last_lines"][0] == "trained 40 epochs");
  CHECK(nlohmann::json::parse(report_json(report_of(2)))["lost_lines"].is_null());
}

TEST_CASE("a failed run reports the lines that could not be written to a log once") {
  const std::string lost =
      "fleetrun: the last lines of rank 1 that could not be written to its log:\n    rank 1: error: no room\n";
  ExitReport report = failed_report();
  report.lost_lines = {.rank = 1, .last_lines = {"rank 1: error: no room"}};
  report.whole = WholeRun{.block = "", .exit_code = 137};
  for (const std::string& block : {std::string("fleetrun: rank 9 failed\n"), describe_end(report)}) {
    report.whole->block = block;
    const std::string text = describe(report);
    const auto place = text.find(lost);
    CHECK(place != std::string::npos);
    CHECK(text.find(lost, place + 1) == std::string::npos);
  }
}

TEST_CASE("slow ranks are reported with their host, phase and factor") {
  ExitReport report = report_of(2);
  CHECK(nlohmann::json::parse(report_json(report))["stragglers"].empty());
  report.stragglers = {{.attempt = 0,
                        .step = 240,
                        .host = "beta",
                        .found = {.rank = 3, .phase = TimeUse::data, .own_ms = 31, .median_ms = 20}}};
  const auto one = nlohmann::json::parse(report_json(report))["stragglers"][0];
  CHECK(one["rank"] == 3);
  CHECK(one["host"] == "beta");
  CHECK(one["phase"] == "data");
  CHECK(one["factor"] == 1.55);
  CHECK(one["step"] == 240);
  CHECK(
      report.stragglers[0].describe() ==
      "rank 3 on beta is slow in data: each step takes it 31.0 ms without communication, 1.55 times the median of "
      "the ranks (20.0 ms)");
}

TEST_CASE("a hang is reported in the words of what was seen, with the roll call for programs") {
  ExitReport report = report_of(2);
  report.verdict.cause = Cause::hung;
  report.verdict.why = "no rank writes anything or works for 60 s";
  report.roll_call = {"rank 0  waiting"};
  CHECK(describe(report) == "fleetrun: no rank writes anything or works for 60 s\n");
  const auto json = nlohmann::json::parse(report_json(report));
  CHECK(json["cause"] == "hung");
  CHECK(json["roll_call"][0] == "rank 0  waiting");
}

}  // namespace
}  // namespace fleetrun::launch::report_test
