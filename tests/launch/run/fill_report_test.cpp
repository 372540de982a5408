#include "launch/run/fill_report.h"

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/system/file.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::fill_report_test {
namespace {

// Of one rank that ended with 3.
ExitReport failed_attempt() {
  ExitReport report;
  report.verdict.cause = Cause::exited;
  report.verdict.rank = 0;
  report.verdict.exit_code = 3;
  report.verdict.ranks = {{Role::cause, ExitStatus{ExitStatus::How::exited, 3}, {}}};
  report.last_lines = {"ValueError: no"};
  report.evidence.exception = "ValueError: no";
  report.step = 7;
  return report;
}

// That wrote to its log.
ExitReport failed_attempt(const LogFolder& logs) {
  const UniqueFd log = logs.open_worker_log(0);
  ExitReport report = failed_attempt();
  report.logs = {logs.worker_log(0)};
  return report;
}

TEST_CASE("an attempt that is kept has its logs in a folder of its own, where the report finds them") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  ExitReport report = failed_attempt(logs);
  CHECK_FALSE(is_archived(0, report));
  record_attempt(logs, report);
  archive_attempt(logs, report);
  CHECK(is_archived(0, report));
  CHECK_FALSE(is_archived(1, report));
  CHECK(folder.has("log/attempt-0/workerlog.0"));
  CHECK_FALSE(folder.has("log/workerlog.0"));
  CHECK(report.logs.front() == folder / "log/attempt-0/workerlog.0");
  REQUIRE(report.attempts.size() == 1);
  CHECK(report.attempts.front().message == "rank 0 exited with code 3: ValueError: no");
  CHECK(report.attempts.front().exit_code == 3);
}

// An attempt of one rank that wrote to its log and then failed; `meanwhile` happens before the report.
ExitReport report_of_attempt(const TemporaryFolder& folder, const std::function<void()>& meanwhile) {
  const LogFolder logs(folder / "log");
  Attempt attempt;
  attempt.logs.push_back(logs.open_worker_log(0));
  attempt.error_logs.emplace_back();
  meanwhile();
  write_all(attempt.logs[0].get(), "RuntimeError: boom\n", "log");
  ExitReport report = failed_attempt();
  const Verdict verdict = report.verdict;
  const std::vector<WorkerRecord> workers(1);
  EventLoop loop;
  fill_attempt({verdict, workers, {}, {}}, attempt, logs, LastWords(loop, attempt, logs), report);
  return report;
}

TEST_CASE("hunt 10: the end of a log that was renamed, removed or replaced meanwhile is told") {
  using Words = std::vector<std::string>;
  const TemporaryFolder folder;
  const std::string log = folder / "log/workerlog.0";
  for (const std::function<void()>& meanwhile : std::vector<std::function<void()>>{
           [] {}, [&] { std::filesystem::rename(log, log + ".1"); }, [&] { std::filesystem::remove(log); },
           [&] {
             std::filesystem::remove(log);
             folder.write("log/workerlog.0", "of the user\n");
           }}) {
    const ExitReport report = report_of_attempt(folder, meanwhile);
    CHECK(report.last_lines == Words{"RuntimeError: boom"});
    CHECK(report.logs == Words{log});
    std::filesystem::remove_all(folder / "log");
  }
}

// Two ranks of a job, whose process started after 1 s and 2 s.
struct TwoRanks {
  TwoRanks() {
    for (int rank = 0; rank < 2; ++rank) {
      pages.push_back(map_inherited_progress_page(-1));
      workers[static_cast<std::size_t>(rank)].started.steady = TimePoint(std::chrono::seconds(rank + 1));
    }
    verdict.attempt = 1;
    verdict.ranks.resize(2);
  }
  void reach(std::atomic<std::int64_t> ProgressPage::*point, std::array<double, 2> seconds) {
    for (std::size_t rank = 0; rank < 2; ++rank)
      (*pages[rank].*point) = static_cast<std::int64_t>(seconds[rank] * 1e9);
  }
  ExitReport report() {
    const TemporaryFolder folder;
    const LogFolder logs(folder / "log");
    ExitReport report;
    EventLoop loop;
    const Attempt attempt;
    fill_attempt({verdict, workers, pages, {}}, attempt, logs, LastWords(loop, attempt, logs), report);
    fill_stand_stills(
        {{.attempt = 1, .why = "lost node 2", .nodes = 2, .detection = std::chrono::seconds(4)}}, report);
    return report;
  }

  std::vector<ProgressPagePtr> pages;
  std::vector<WorkerRecord> workers{2};
  Verdict verdict;
};

TEST_CASE("a stand-still ends with the first step, and in each part the slowest rank counts") {
  using Parts = std::vector<std::pair<std::string, double>>;
  TwoRanks ranks;
  const Parts measured = {{"detection", 4}, {"stop", 0}, {"pause", 0}, {"join", 0}};
  CHECK(ranks.report().stand_stills.at(0).seconds == measured);
  ranks.reach(&ProgressPage::load_began_ns, {2.5, 3});
  ranks.reach(&ProgressPage::load_ended_ns, {2.75, 4});
  Parts until_load = measured;
  until_load.emplace_back("start", 1.5);
  until_load.emplace_back("load", 1);
  CHECK(ranks.report().stand_stills.at(0).seconds == until_load);
  ranks.reach(&ProgressPage::first_step_ns, {4.75, 5});
  until_load.emplace_back("first_step", 2);
  CHECK(ranks.report().stand_stills.at(0).seconds == until_load);
}

TEST_CASE("a run that ends in a pause has its own cause, and none of what made the attempt fail") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  ExitReport report = failed_attempt(logs);
  record_attempt(logs, report);
  archive_attempt(logs, report);
  Verdict verdict = report.verdict;
  verdict.cause = Cause::stopped;
  verdict.signal = SIGINT;
  verdict.rank.reset();
  fill_end_before_restart(verdict, report);
  CHECK(describe_failure(report) == "stopped by SIGINT (2)");
  CHECK(report.last_lines.empty());
  CHECK_FALSE(report.step);
}

std::vector<ProgressPagePtr> make_pages(std::size_t ranks) {
  std::vector<ProgressPagePtr> pages(ranks);
  for (ProgressPagePtr& page : pages) page = map_inherited_progress_page(-1);
  return pages;
}

TEST_CASE(
    "hunt 19: the run knows that nothing was saved once all ranks work, and have loaded no checkpoint") {
  const std::vector<ProgressPagePtr> pages = make_pages(2);
  CHECK(saved_by({}, true) == Saved::unknown);
  CHECK(saved_by(pages, true) == Saved::unknown);
  pages[0]->first_step_ns = 1;
  CHECK(saved_by(pages, true) == Saved::unknown);
  pages[1]->first_step_ns = 1;
  CHECK(saved_by(pages, true) == Saved::nothing);
  pages[1]->has_own_checkpoint = true;  // the plan of a rank that does not write
  CHECK(saved_by(pages, true) == Saved::nothing);
  CHECK(saved_by(pages, false) == Saved::own_checkpoint);
  pages[0]->saved_steps = 7;
  CHECK(saved_by(pages, true) == Saved::unknown);
  pages[0]->has_own_checkpoint = true;
  CHECK(saved_by(pages, true) == Saved::own_checkpoint);
  pages[1]->is_done = true;
  CHECK(saved_by(pages, true) == Saved::own_checkpoint);
  CHECK(saved_by(pages, false) == Saved::elsewhere);
  pages[0]->has_saved_weights = true;
  CHECK(saved_by(pages, true) == Saved::weights);
}

TEST_CASE("a run that was stopped on all nodes in the pause before a restart has the command that goes on") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  ExitReport report = failed_attempt(logs);
  StopPlan stop = plan_stop({.dir = "/out/saved"}, {});
  set_command("fleetrun", {"job.json"}, 0, stop);
  report.whole = WholeRun{.cause = "stopped", .stop_signal = SIGTERM};
  report.saved = Saved::own_checkpoint;
  fill_going_on(logs, stop, report);
  CHECK(report.going_on == "fleetrun: to go on, run\n    fleetrun job.json\n");
  report.whole = WholeRun{.cause = "timed_out"};
  fill_going_on(logs, stop, report);
  CHECK(report.going_on == "fleetrun: to go on, run\n    fleetrun job.json\n");
  report.saved = Saved::nothing;
  fill_going_on(logs, stop, report);
  CHECK(report.going_on.empty());
}

TEST_CASE("an error of fleetrun itself has its own code, but not instead of the failure before a restart") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  ExitReport report = failed_attempt(logs);
  const Error error(ErrorKind::create, "log/attempt-0 is in the way");
  end_report(error, report);
  CHECK(report.error == "log/attempt-0 is in the way");
  CHECK(report.verdict.exit_code == 73);
  report.verdict.exit_code = 3;
  record_attempt(logs, report);
  archive_attempt(logs, report);
  end_report(error, report);
  CHECK(report.verdict.exit_code == 3);
}

}  // namespace
}  // namespace fleetrun::launch::fill_report_test
