#include "launch/cli/log_query.h"

#include <ctime>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch::log_query_test {
namespace {

using namespace std::chrono_literals;
using WallClock = std::chrono::system_clock;

const WallClock::time_point kNow = WallClock::from_time_t(1'800'000'000);

TEST_CASE("a time is so long ago, or the last one with that hour and minute") {
  CHECK(parse_since("--since", "30s", kNow) == kNow - 30s);
  CHECK(parse_since("--since", "10m", kNow) == kNow - 10min);
  CHECK(parse_since("--since", "2h", kNow) == kNow - 2h);
  CHECK(parse_since("--since", "1d", kNow) == kNow - 24h);
  const std::time_t parsed = WallClock::to_time_t(parse_since("--since", "14:30:05", kNow));
  std::tm local{};
  ::localtime_r(&parsed, &local);
  CHECK(local.tm_hour * 3600 + local.tm_min * 60 + local.tm_sec == 14 * 3600 + 30 * 60 + 5);
  for (const auto ahead : {1min, 1380min}) {
    const std::time_t later = WallClock::to_time_t(kNow + ahead);
    ::localtime_r(&later, &local);
    CHECK(parse_since("--since", fmt::format("{:02}:{:02}", local.tm_hour, local.tm_min), kNow) ==
          kNow + ahead - 24h);
  }
  for (const char* wrong : {"", "10", "m", "-5m", "25:00", "14:30x", "10 m"})
    CHECK_THROWS_AS(parse_since("--since", wrong, kNow), Error);
}

std::string prefix_of(const std::string& text) {
  return parse_log_query({.flags = {{"--log_prefix", text}}, .rest = {}}, "log", kNow).prefix->text;
}

TEST_CASE("a prefix has only what is known of a log after the run") {
  CHECK(prefix_of("{rank}/{local_rank} #{attempt}: ") == "{rank}/{local_rank} #{attempt}: ");
  CHECK_THROWS_WITH_AS(
      prefix_of("{time} [{rank}] "),
      "--log_prefix has {time}, which is known only during the run; logs knows {rank}, {local_rank}, {attempt}",
      Error);
  for (const char* name : {"{host}", "{role}"}) CHECK_THROWS_AS(prefix_of(name), Error);
}

}  // namespace
}  // namespace fleetrun::launch::log_query_test
