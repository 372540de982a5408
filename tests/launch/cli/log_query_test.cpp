#include "launch/cli/log_query.h"

#include <ctime>

#include <doctest/doctest.h>

#include "base/error.h"
#include "launch/logs/log_times.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::log_query_test {
namespace {

using namespace std::chrono_literals;
using WallClock = std::chrono::system_clock;

const WallClock::time_point kNow = WallClock::from_time_t(1'800'000'000);

TEST_CASE("a time is so long ago, or one of today") {
  CHECK(parse_since("--since", "30s", kNow) == kNow - 30s);
  CHECK(parse_since("--since", "10m", kNow) == kNow - 10min);
  CHECK(parse_since("--since", "2h", kNow) == kNow - 2h);
  CHECK(parse_since("--since", "1d", kNow) == kNow - 24h);
  const std::time_t parsed = WallClock::to_time_t(parse_since("--since", "14:30:05", kNow));
  std::tm local{};
  ::localtime_r(&parsed, &local);
  CHECK(local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec == 14 * 3600 + 30 * 60 + 5);
  for (const char* wrong : {"", "10", "m", "-5m", "25:00", "14:30x", "10 m"})
    CHECK_THROWS_AS(parse_since("--since", wrong, kNow), Error);
}

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
  CHECK(place_in_log("/no/such", "0", kNow) == 0);
}

TEST_CASE("ranks with logs are found in their order, and a folder without any is an error") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(find_logs(folder.path()), Error);
  for (const char* name :
       {"workerlog.10", "workerlog.2", "workerlog.2.err", "workerlog.x", "workerlog..err", "endpoints.log"})
    folder.write(name, "");
  CHECK(find_logs(folder.path()) == std::vector<RankLog>{{2}, {2, true}, {10}});
}

}  // namespace
}  // namespace fleetrun::launch::log_query_test
