#include "runtime/checkpoint/requests.h"

#include <doctest/doctest.h>

namespace fleetrun::runtime {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST_CASE("a signal that reaches this rank just after another one's save asks for nothing new") {
  SaveRequests requests;
  CHECK_FALSE(requests.is_new(false, 0));
  requests.answered(false, 0);
  CHECK_FALSE(requests.is_new(false, 5 * kMs));
  CHECK_FALSE(requests.is_new(true, 10 * kMs));
  CHECK(requests.is_new(true, 15 * kMs));  // a second one does
}

TEST_CASE("the signal may come during the next step, however long that is, but not much later") {
  SaveRequests requests;
  requests.answered(false, 0);
  CHECK_FALSE(requests.is_new(true, 60'000 * kMs));
  requests.answered(false, 60'000 * kMs);
  CHECK_FALSE(requests.is_new(false, 62'000 * kMs));
  CHECK(requests.is_new(true, 62'001 * kMs));
}

TEST_CASE("who asked for the save itself is asked for another one by the next signal") {
  SaveRequests requests;
  CHECK(requests.is_new(true, 0));
  requests.answered(true, 0);
  CHECK(requests.is_new(true, kMs));
}

}  // namespace
}  // namespace fleetrun::runtime
