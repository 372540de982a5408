#include "launch/loop/event_loop.h"

#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "base/system/pipe.h"

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

TEST_CASE("a descriptor that takes the place of one that was ready is not ready itself") {
  for (int round = 0; round < 20; ++round) {
    EventLoop loop;
    const Pipe first = make_pipe(), second = make_pipe(), silent = make_pipe();
    bool spoke = false;
    // Whichever is served first forgets both, though the other one is ready, too.
    const auto exchange = [&] {
      loop.forget(first.read_end.get());
      loop.forget(second.read_end.get());
      loop.watch_readable(silent.read_end.get(), [&] { spoke = true; });
    };
    for (const Pipe* pipe : {&first, &second}) {
      loop.watch_readable(pipe->read_end.get(), exchange);
      REQUIRE(::write(pipe->write_end.get(), "x", 1) == 1);
    }
    while (loop.poll_one()) {
    }
    CHECK_FALSE(spoke);
  }
}

}  // namespace
}  // namespace fleetrun::launch::event_loop_test
