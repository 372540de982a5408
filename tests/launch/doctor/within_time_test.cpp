#include "launch/doctor/within_time.h"

#include <doctest/doctest.h>

#include <future>

namespace fleetrun::launch::within_time_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("work that ends in time has a result, and work that does not has none") {
  CHECK(within_time<int>(60s, [] { return 3; }) == 3);
  const auto never = std::make_shared<std::promise<int>>();
  CHECK(within_time<int>(1ms, [never] { return never->get_future().get(); }) == std::nullopt);
  never->set_value(4);
}

}  // namespace
}  // namespace fleetrun::launch::within_time_test
