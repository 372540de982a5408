#include "launch/supervise/event_queue.h"

#include <chrono>
#include <csignal>

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::event_queue_test {
namespace {

using namespace std::chrono_literals;

int signal_in(const Event& event) {
  REQUIRE(std::holds_alternative<SignalReceived>(event));
  return std::get<SignalReceived>(event).signal;
}

TEST_CASE("events come out in the order in which they happened, those that are due later last") {
  EventLoop loop;
  EventQueue events(loop);
  events.push_at(Clock::now() + 20ms, SignalReceived{SIGHUP});
  events.push(SignalReceived{SIGTERM});
  events.push(SignalReceived{SIGINT});
  CHECK(signal_in(events.next()) == SIGTERM);
  CHECK(signal_in(events.next()) == SIGINT);
  CHECK(signal_in(events.next()) == SIGHUP);
}

TEST_CASE("what is looked at again and again is looked at while the queue waits, and may put an event in") {
  EventLoop loop;
  EventQueue events(loop);
  int looks = 0;
  loop.call_every(1ms, [&] {
    if (++looks == 3) events.push(HangFound{"three looks"});
  });
  const Event event = events.next();
  REQUIRE(std::holds_alternative<HangFound>(event));
  CHECK(std::get<HangFound>(event).why == "three looks");
  CHECK(looks == 3);
}

TEST_CASE("an event that nobody can bring about any more is an error, and no endless wait") {
  EventLoop loop;
  CHECK_THROWS_AS(EventQueue(loop).next(), Error);
}

}  // namespace
}  // namespace fleetrun::launch::event_queue_test
