#include "launch/cli/flags/log_prefix.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::log_prefix_test {
namespace {

TEST_CASE("a prefix has the names in braces replaced") {
  const LinePlace place = {.rank = 5, .local_rank = 1, .host = "node7", .attempt = 2};
  const LogPrefix prefix = parse_log_prefix("--log_prefix", "{host}/{rank}.{local_rank} #{attempt}: ");
  CHECK(expand(prefix, place) == "node7/5.1 #2: ");
  CHECK(expand({"{time}"}, place).size() == 8);
  CHECK(expand({"plain"}, place) == "plain");
}

TEST_CASE("a host name cannot send anything to the terminal") {
  CHECK(expand({"{host}: "}, {.host = "a\033[31mb"}) == "a?[31mb: ");
}

TEST_CASE("other names are refused with what was probably meant") {
  CHECK_THROWS_WITH_AS(
      parse_log_prefix("--log_prefix", "{rnak}"),
      "--log_prefix has {rnak}, must have only {rank}, {local_rank}, {role}, {host}, {time}, {attempt}; did you mean {rank}?",
      Error);
  CHECK_THROWS_WITH_AS(parse_log_prefix("--log_prefix", "a{rank"),
                       "--log_prefix is \"a{rank\": a brace is not closed", Error);
}

}  // namespace
}  // namespace fleetrun::launch::log_prefix_test
