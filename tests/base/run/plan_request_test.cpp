#include "base/run/plan_request.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::plan_request_test {
namespace {

TEST_CASE("a request to plan survives the command line of the worker") {
  const PlanRequest asked = {
      .hosts = 4, .gpus = 2, .memory_bytes = 16e9, .network_gb_s = 1.25, .step_ms = 51.5};
  CHECK(parse_plan_request(write_plan_request(asked)) == asked);
  CHECK(parse_plan_request(write_plan_request({})) == PlanRequest{});
}

TEST_CASE("a request to plan that makes no sense is refused") {
  for (const std::string bad : {"hosts=0", "gpus=x", "memory", "speed=3", "tflops=-1"})
    CHECK_THROWS_AS(parse_plan_request(bad), Error);
}

}  // namespace
}  // namespace fleetrun::plan_request_test
