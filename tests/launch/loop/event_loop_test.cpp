#include "launch/loop/event_loop.h"

#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::event_loop_test {
namespace {

TEST_CASE("a descriptor that the kernel does not let us watch is an error, and the loop goes on without it") {
  EventLoop loop;
  const int closed =
      ::fcntl(STDIN_FILENO, F_DUPFD, 900);  // a number that the loop takes for nothing of its own
  ::close(closed);
  for (int i = 0; i < 2; ++i) {
    try {
      loop.watch_readable(closed, [] {});
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.exit_code() == 71);
      CHECK(error.message() == "watching a descriptor: Bad file descriptor (errno 9)");
    }
  }
  loop.call_at(Clock::now(), [&] { loop.stop(); });
  loop.run();
}

}  // namespace
}  // namespace fleetrun::launch::event_loop_test
