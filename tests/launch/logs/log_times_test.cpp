#include "launch/logs/log_times.h"

#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::log_times_test {
namespace {

TEST_CASE("the end of a log is older than any time after the end of the attempt") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  EventLoop loop;
  LogTimes times(loop, logs, {"0", "1"});
  times.begin_attempt();
  folder.write("log/workerlog.0", "one\ntwo\n");
  times.look();
  times.finish();  // before the entry that the look has asked for is due
  const auto now = std::chrono::system_clock::now();
  CHECK(places_in_logs(folder / "log", {"0", "1"}, now) == LogPlaces{{"0", 8}, {"1", 0}});
  CHECK(places_in_logs(folder / "log", {"0"}, now - std::chrono::hours(1)) == LogPlaces{{"0", 0}});
}

TEST_CASE("each time a rank empties its log, the name of the log is reported once") {
  const TemporaryFolder folder;
  const LogFolder logs(folder / "log");
  EventLoop loop;
  std::vector<std::string> shorter;
  LogTimes times(loop, logs, {"0", "1.err"}, [&](const std::string& log) { shorter.push_back(log); });
  times.begin_attempt();
  folder.write("log/workerlog.0", "one\n");
  folder.write("log/workerlog.1.err", "one\ntwo\n");
  times.finish();
  folder.write("log/workerlog.0", "one\nmore\n");
  folder.write("log/workerlog.1.err", "three\n");
  times.finish();
  times.finish();
  CHECK(shorter == std::vector<std::string>{"1.err"});
  std::filesystem::rename(folder / "log/workerlog.0", folder / "log/rotated");
  folder.write("log/workerlog.0", "");
  times.finish();
  CHECK(shorter.size() == 1);
}

TEST_CASE("the place in a log is that of the last entry before the time") {
  const TemporaryFolder folder;
  folder.write(".times", "100.000 0 500\n100.000 1 20\n105.999 0 900\n150.000 1.err 7\n200.001 0 1000\n");
  const auto places = [&](std::time_t time) {
    return places_in_logs(folder.path(), {"0", "1", "1.err", "2"},
                          std::chrono::system_clock::from_time_t(time));
  };
  CHECK(places(99) == LogPlaces{{"0", 0}, {"1", 0}, {"1.err", 0}, {"2", 0}});
  CHECK(places(100) == LogPlaces{{"0", 500}, {"1", 20}, {"1.err", 0}, {"2", 0}});
  CHECK(places(150) == LogPlaces{{"0", 900}, {"1", 20}, {"1.err", 7}, {"2", 0}});
  CHECK(places_in_logs("/no/such", {"0"}, std::chrono::system_clock::now()) == LogPlaces{{"0", 0}});
}

TEST_CASE("hunt 137: what was written within the second of the time is not left out") {
  const TemporaryFolder folder;
  folder.write(".times",
               "99.100 0 400\n100.400 0 500\n99 1 30\n100 1 40\n");  // rank 1: of an earlier version
  const auto at = std::chrono::system_clock::from_time_t(100);
  CHECK(places_in_logs(folder.path(), {"0", "1"}, at) == LogPlaces{{"0", 400}, {"1", 30}});
  CHECK(places_in_logs(folder.path(), {"0"}, at + std::chrono::milliseconds(400)) == LogPlaces{{"0", 500}});
}

TEST_CASE("places in the logs of a long run are found from the end, over all pieces of the file") {
  const TemporaryFolder folder;
  std::string entries = "1 quiet 5\n";
  for (int i = 2; i < 100'000; ++i) entries += fmt::format("{}.000 {} {}\n", i, i % 2, i * 10);
  entries += "no entry\n100000 0 ";  // of a disk that was full
  folder.write(".times", entries);
  const auto at = [](std::time_t time) { return std::chrono::system_clock::from_time_t(time); };
  CHECK(places_in_logs(folder.path(), {"0", "1", "quiet"}, at(200'000)) ==
        LogPlaces{{"0", 999'980}, {"1", 999'990}, {"quiet", 5}});
  CHECK(places_in_logs(folder.path(), {"0", "1"}, at(50'001)) == LogPlaces{{"0", 500'000}, {"1", 500'010}});
}

}  // namespace
}  // namespace fleetrun::launch::log_times_test
