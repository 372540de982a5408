#include "launch/logs/rank_logs.h"

#include <chrono>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/logs/log_times.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::rank_logs_test {
namespace {

using WallClock = std::chrono::system_clock;

TEST_CASE("the place in a log is that of the last entry before the time") {
  const TemporaryFolder folder;
  folder.write(".times", "100 0 500\n100 1 20\n105 0 900\n150 1.err 7\n200 0 1000\n");
  const auto place = [&](const char* log, std::time_t time) {
    return place_in_log(folder.path(), log, WallClock::from_time_t(time));
  };
  CHECK(place("0", 99) == 0);
  CHECK(place("0", 100) == 500);
  CHECK(place("0", 150) == 900);
  CHECK(place("1", 150) == 20);
  CHECK(place("2", 150) == 0);
  CHECK(place("1.err", 150) == 7);
  CHECK(place_in_log("/no/such", "0", WallClock::now()) == 0);
}

TEST_CASE("ranks with logs are found in their order, and a folder without any is an error") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(find_logs(folder.path()), Error);
  for (const char* name :
       {"workerlog.10", "workerlog.2", "workerlog.2.err", "workerlog.x", "workerlog..err", "endpoints.log"})
    folder.write(name, "");
  CHECK(find_logs(folder.path()) == std::vector<RankLog>{{2}, {2, true}, {10}});
}

TEST_CASE("the present attempt comes after those that are kept, and after those before a node joined") {
  const TemporaryFolder folder;
  CHECK(attempt_in(folder.path(), 0) == 0);
  CHECK(attempt_in(folder.path(), 3) == 3);
  folder.write("attempt-9/workerlog.0", "");
  folder.write("attempt-10/workerlog.0", "");
  CHECK(attempt_in(folder.path(), 3) == 11);
  CHECK(attempt_in(folder / "attempt-9", 3) == 9);
}

}  // namespace
}  // namespace fleetrun::launch::rank_logs_test
