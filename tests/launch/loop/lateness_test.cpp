#include "launch/loop/lateness.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::lateness_test {
namespace {

using namespace std::chrono_literals;

void work(Clock::duration time) {
  const TimePoint end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

TEST_CASE("what a process did since the look before the last one counts, and what it did earlier does not") {
  Lateness lateness;
  work(300ms);
  lateness.look();
  lateness.look();
  const Clock::duration at_once = lateness.now();
  CHECK(at_once < 100ms);
  work(60ms);  // runs, or waits for a processor
  CHECK(lateness.now() - at_once > 20ms);
  lateness.look();
  CHECK(lateness.now() > 20ms);  // the last look may have found the event already
}

}  // namespace
}  // namespace fleetrun::launch::lateness_test
