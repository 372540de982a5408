// The logs of the run before, which stay in previous/.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "launch/logs/log_folder.h"
#include "launch/logs/why_not.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::previous_logs_test {
namespace {

const LogPlan kKeeping = {.keeps_previous = true};

TEST_CASE("a training begins its history anew, and that of the run before is in previous/") {
  const TemporaryFolder folder;
  const LogPlan training = {.has_train_report = true, .keeps_previous = true};
  const std::string rows = "step,loss\n1,0.5\n";
  {
    const LogFolder logs(folder / "log", training);
    logs.prepare_history();
    CHECK(logs.open_worker_log(0));
    std::ofstream(folder / "log/history.csv") << rows;
    logs.prepare_history();  // of the next attempt
    CHECK(folder.read("log/history.csv") == rows);
  }
  const LogFolder logs(folder / "log", training);
  logs.prepare_history();
  CHECK(folder.read("log/history.csv") == "");
  CHECK(folder.read("log/previous/history.csv") == rows);
}

// One run in the folder, whose rank 0 writes this.
void run_that_writes(const TemporaryFolder& folder, const std::string& text, bool has_attempts = false) {
  const LogFolder logs(folder / "log", kKeeping);
  for (int attempt = 0; attempt < (has_attempts ? 2 : 0); ++attempt) {
    CHECK(logs.open_worker_log(0));
    logs.keep_attempt(attempt);
  }
  const UniqueFd log = logs.open_worker_log(0);
  CHECK(::write(log.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  logs.write("report.json", text);
  CHECK(logs.open_times());
  logs.reserve();
}

TEST_CASE("the files of the run before are in previous/, and those of the one before that are gone") {
  const TemporaryFolder folder;
  run_that_writes(folder, "first", true);
  folder.write("log/notes.txt", "of the user");
  {
    const LogFolder logs(folder / "log", kKeeping);
    CHECK(logs.previous() == folder / "log/previous");
    for (const char* kept :
         {"workerlog.0", "report.json", ".times", "attempt-0/workerlog.0", "attempt-1/workerlog.0"}) {
      CHECK_MESSAGE(folder.has(std::string("log/previous/") + kept), kept);
      CHECK_FALSE_MESSAGE(folder.has(std::string("log/") + kept), kept);
    }
    for (const char* gone : {"attempt-0", ".reserve", "previous/.reserve", "previous/notes.txt"})
      CHECK_FALSE_MESSAGE(folder.has(std::string("log/") + gone), gone);
    CHECK(logs.open_worker_log(0));
  }
  run_that_writes(folder, "third");
  CHECK_FALSE(folder.has("log/previous/attempt-0"));
  CHECK(folder.read("log/previous/workerlog.0").empty());  // of the second run
  run_that_writes(folder, "fourth");
  CHECK(folder.read("log/previous/workerlog.0") == "third");
  CHECK(folder.read("log/notes.txt") == "of the user");
  remove_log_folder(folder / "log");
  CHECK_FALSE(folder.has("log/previous"));
}

// A run in the folder that starts no rank, because its port is taken.
void fail_to_start(const TemporaryFolder& folder, const std::string& report) {
  const LogFolder logs(folder / "log", kKeeping);
  logs.write("report.json", report);
}

TEST_CASE("runs that start no rank leave the logs of the last run that did in previous/") {
  const TemporaryFolder folder;
  run_that_writes(folder, "of a run");
  fail_to_start(folder, "first failure");
  fail_to_start(folder, "second failure");
  CHECK(folder.read("log/previous/workerlog.0") == "of a run");
  CHECK(folder.read("log/previous/report.json") == "of a run");
  CHECK(folder.read("log/report.json") == "second failure");
  run_that_writes(folder, "of the next run");
  CHECK(folder.read("log/previous/workerlog.0") == "of a run");
  run_that_writes(folder, "of a third run");
  CHECK(folder.read("log/previous/workerlog.0") == "of the next run");
}

TEST_CASE("the logs of earlier attempts count as logs of a run") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log", kKeeping);
    CHECK(logs.open_worker_log(0));
    logs.keep_attempt(0);
  }
  fail_to_start(folder, "first failure");
  fail_to_start(folder, "second failure");
  CHECK(folder.has("log/previous/attempt-0/workerlog.0"));
}

TEST_CASE("the report of a run without ranks is kept while there are no logs to keep") {
  const TemporaryFolder folder;
  fail_to_start(folder, "first failure");
  fail_to_start(folder, "second failure");
  CHECK(folder.read("log/previous/report.json") == "first failure");
}

TEST_CASE("a run that was killed has its logs in previous/, too") {
  const TemporaryFolder folder;
  {
    const LogFolder logs(folder / "log", {.run_id = "killed"});
    folder.write("log/train.json", R"({"run_id": "killed"})");
    CHECK(::write(logs.open_worker_log(0).get(), "old", 3) == 3);
    folder.write("list", folder.read("log/.fleetrun"));
  }
  std::filesystem::rename(folder / "list", folder / "log/.fleetrun");
  run_that_writes(folder, "second");
  CHECK(folder.read("log/previous/workerlog.0") == "old");
  CHECK(folder.has("log/previous/train.json"));
  run_that_writes(folder, "third");
  CHECK_FALSE(folder.has("log/previous/train.json"));
}

TEST_CASE("what somebody else put into previous/, or in its place, stays where it is") {
  const TemporaryFolder folder;
  run_that_writes(folder, "first");
  std::filesystem::create_directory(folder / "log/previous");
  folder.write("log/previous/report.json", "of the user");
  CHECK(why_not(folder / "log", kKeeping) ==
        folder / "log/previous is in the way: a folder that no run of fleetrun left there");
  CHECK(folder.read("log/workerlog.0") == "first");
  std::filesystem::rename(folder / "log/previous", folder / "mine");
  run_that_writes(folder, "second");
  folder.write("log/previous/report.json", "of the user");
  folder.write("log/previous/notes.txt", "of the user");
  CHECK(why_not(folder / "log", kKeeping).starts_with(folder / "log/previous/report.json is in the way"));
  CHECK(folder.read("log/workerlog.0") == "second");
  std::filesystem::remove(folder / "log/previous/report.json");
  run_that_writes(folder, "third");
  CHECK(folder.read("log/previous/workerlog.0") == "second");
  CHECK(folder.read("log/previous/notes.txt") == "of the user");
}

}  // namespace
}  // namespace fleetrun::launch::previous_logs_test
