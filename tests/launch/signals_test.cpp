#include "launch/signals.h"

#include <unistd.h>

#include <doctest/doctest.h>

namespace fleetrun::launch::signals_test {
namespace {

constexpr const char* kStatus =
    "Name:\tx\nState:\tS\nSigQ:\t0/1\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"
    "SigBlk:\t0000000000000800\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000200\n";

TEST_CASE("a signal that is handled, blocked or ignored ends nobody") {
  CHECK_FALSE(would_end(kStatus, SIGUSR1));  // handled: bit 9
  CHECK_FALSE(would_end(kStatus, SIGUSR2));  // blocked: bit 11
  CHECK_FALSE(would_end(kStatus, SIGPIPE));  // ignored: bit 12
  CHECK(would_end(kStatus, SIGTERM));
}

TEST_CASE("of a process that is gone nothing is known") {
  CHECK_FALSE(would_end("", SIGUSR1));
  CHECK_FALSE(would_end(pid_t{0}, SIGUSR1));
}

TEST_CASE("this process is ended by what it does not handle") {
  ::signal(SIGUSR2, SIG_DFL);
  CHECK(would_end(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, SIG_IGN);
  CHECK_FALSE(would_end(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, SIG_DFL);
}

}  // namespace
}  // namespace fleetrun::launch::signals_test
