#include "base/run/tune_request.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::tune_request_test {
namespace {

TEST_CASE("a request to tune survives the command line of the worker") {
  const TuneRequest all = {
      .budget_seconds = 90.5, .amp = true, .explain = true, .again = true, .memory = 8LL << 30};
  CHECK(write_tune_request(all) == "budget=90.5,amp,explain,again,memory=8589934592");
  CHECK(parse_tune_request(write_tune_request(all)) == all);
  CHECK(parse_tune_request(write_tune_request({})) == TuneRequest{});
}

TEST_CASE("a request that makes no sense is refused with its part") {
  for (const std::string bad : {"budget", "budget=-1", "budget=1x", "memory=0", "amp=1", "fast"})
    CHECK_THROWS_AS(parse_tune_request(bad), Error);
}

}  // namespace
}  // namespace fleetrun::tune_request_test
