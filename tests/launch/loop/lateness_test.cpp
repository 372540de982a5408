#include "launch/loop/lateness.h"

#include <doctest/doctest.h>

#include "launch/loop/event_loop.h"

namespace fleetrun::launch::lateness_test {
namespace {

using namespace std::chrono_literals;

constexpr auto kExact = 100ms;

void work(Clock::duration time) {
  const TimePoint end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

void wait_for_event(Clock::duration time) {
  EventLoop loop;
  loop.call_at(Clock::now() + time, [] {});
  loop.run_one();
}

TEST_CASE("what a process did since it found nothing counts, and what it did earlier does not") {
  Lateness lateness;
  work(300ms);
  CHECK(lateness.now() >= 300ms);
  const TimePoint start = Clock::now();
  lateness.found_nothing();
  const Clock::duration at_once = lateness.now();
  CHECK(at_once < Clock::now() - start + kExact);
  work(60ms);  // runs, or waits for a processor
  CHECK(lateness.now() > 20ms);
}

TEST_CASE("a wait for events does not count, and a wait for something else does") {
  Lateness lateness;
  const TimePoint start = Clock::now();
  lateness.found_nothing();
  wait_for_event(200ms);
  const Clock::duration after_wait = lateness.now();
  CHECK(after_wait < Clock::now() - start - 200ms + kExact);  // all but the wait
  lateness.woke();
  wait_for_event(200ms);  // of which it is not told
  lateness.woke();        // by an event that had come meanwhile
  CHECK(lateness.now() >= 200ms);
}

}  // namespace
}  // namespace fleetrun::launch::lateness_test
