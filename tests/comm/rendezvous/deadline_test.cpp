#include "comm/rendezvous/deadline.h"

#include <doctest/doctest.h>

namespace fleetrun::comm::deadline_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("the time in which the waiting process stood still does not count") {
  Deadline deadline(10s);
  const auto start = deadline.end() - 10s;
  deadline.look(start + 200ms);
  deadline.look(start + 400ms);
  CHECK(deadline.end() == start + 10s);
  deadline.look(start + 400ms + 1h);
  CHECK(deadline.end() == start + 10s + 1h);
  deadline.look(start + 600ms + 1h);
  CHECK(deadline.end() == start + 10s + 1h);
  CHECK(deadline.total_seconds() == 10);
}

}  // namespace
}  // namespace fleetrun::comm::deadline_test
