#include "launch/logs/log_times.h"

#include <doctest/doctest.h>

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
  CHECK(place_in_log(folder / "log", "0", now) == 8);
  CHECK(place_in_log(folder / "log", "0", now - std::chrono::hours(1)) == 0);
  CHECK(place_in_log(folder / "log", "1", now) == 0);
}

}  // namespace
}  // namespace fleetrun::launch::log_times_test
