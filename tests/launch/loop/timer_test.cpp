#include "launch/loop/timer.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>

namespace fleetrun::launch::timer_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("only the last call of a timer is made, and none of a cancelled or destroyed one") {
  EventLoop loop;
  std::string calls;
  Timer moved(loop), cancelled(loop), end(loop);
  auto destroyed = std::make_unique<Timer>(loop);
  const TimePoint now = Clock::now();
  moved.call_at(now + 1ms, [&] { calls += "first "; });
  moved.call_at(now + 2ms, [&] { calls += "second "; });
  // These have passed when the loop begins: the loop may have queued the calls when the first one is made.
  cancelled.call_at(now, [&] { calls += "cancelled "; });
  destroyed->call_at(now, [&] { calls += "destroyed "; });
  Timer first(loop);
  first.call_at(now - 1ms, [&] {
    cancelled.cancel();
    destroyed.reset();
  });
  end.call_at(now + 20ms, [&] { loop.stop(); });
  loop.run();
  CHECK(calls == "second ");
}

TEST_CASE("a timer may set itself again from its own call") {
  EventLoop loop;
  Timer timer(loop);
  int calls = 0;
  const EventLoop::Callback again = [&] {
    if (++calls == 3) return loop.stop();
    timer.call_at(Clock::now(), again);
  };
  timer.call_at(Clock::now(), again);
  loop.run();
  CHECK(calls == 3);
}

}  // namespace
}  // namespace fleetrun::launch::timer_test
