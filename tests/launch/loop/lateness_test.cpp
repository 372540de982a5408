#include "launch/loop/lateness.h"

#include <doctest/doctest.h>

#include <thread>

namespace fleetrun::launch::lateness_test {
namespace {

using namespace std::chrono_literals;

void work(Clock::duration time) {
  const TimePoint end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

TEST_CASE("what a process did since it found nothing counts, and what it did earlier does not") {
  Lateness lateness;
  work(300ms);
  CHECK(lateness.now() >= 300ms);
  lateness.found_nothing();
  CHECK(lateness.now() < 100ms);
  work(60ms);  // runs, or waits for a processor
  CHECK(lateness.now() > 20ms);
}

TEST_CASE("a wait for events does not count, and a wait for something else does") {
  Lateness lateness;
  lateness.found_nothing();
  std::this_thread::sleep_for(200ms);
  CHECK(lateness.now() < 100ms);
  lateness.woke();
  std::this_thread::sleep_for(200ms);
  lateness.woke();  // by an event that had come meanwhile
  CHECK(lateness.now() >= 200ms);
}

}  // namespace
}  // namespace fleetrun::launch::lateness_test
