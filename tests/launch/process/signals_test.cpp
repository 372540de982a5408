#include "launch/process/signals.h"

#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include <doctest/doctest.h>

#include "launch/process/pidfd.h"

namespace fleetrun::launch::signals_test {
namespace {

using namespace std::chrono_literals;

TimePoint at(Clock::duration time) { return TimePoint(1h + time); }

constexpr const char* kStatus =
    "Name:\tx\nState:\tS\nSigQ:\t0/1\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"
    "SigBlk:\t0000000000000800\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000200\n";

TEST_CASE("a signal that is handled, blocked or ignored ends nobody") {
  CHECK_FALSE(would_end({kStatus}, SIGUSR1));  // handled: bit 9
  CHECK_FALSE(would_end({kStatus}, SIGUSR2));  // blocked: bit 11
  CHECK_FALSE(would_end({kStatus}, SIGPIPE));  // ignored: bit 12
  CHECK(would_end({kStatus}, SIGTERM));
}

std::string thread_that_blocks(const std::string& mask) {
  return "Name:\tx\nSigBlk:\t" + mask + "\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n";
}

TEST_CASE("a signal that one thread of several does not block ends the process") {
  const std::string blocks = thread_that_blocks("0000000000000800"),
                    open = thread_that_blocks("0000000000000000");
  CHECK_FALSE(would_end({blocks, blocks}, SIGUSR2));
  CHECK_FALSE(would_end({blocks, ""}, SIGUSR2));  // a thread that is gone
  CHECK(would_end({blocks, open}, SIGUSR2));
  CHECK(would_end({open, blocks}, SIGUSR2));
}

TEST_CASE("a thread that blocks every signal does so for a moment, and survives nothing") {
  const std::string blocks = thread_that_blocks("0000000000000800");
  for (const char* full : {"fffffffffffbfeff", "fffffffe7ffbfeff", "000000007ffbfeff"}) {
    CHECK(would_end({thread_that_blocks(full)}, SIGUSR2));
    CHECK(would_end({blocks, thread_that_blocks(full)}, SIGUSR2));
  }
  CHECK_FALSE(would_end({thread_that_blocks("000000003ffbfeff")}, SIGUSR2));  // all but one
}

// What the test program itself does with a signal, put back at the end.
class OwnSignals {
 public:
  OwnSignals() { ::pthread_sigmask(SIG_BLOCK, nullptr, &mask_); }
  ~OwnSignals() {
    ::signal(SIGCHLD, SIG_DFL);
    ::signal(SIGPIPE, SIG_DFL);
    ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }
  OwnSignals(const OwnSignals&) = delete;
  OwnSignals& operator=(const OwnSignals&) = delete;

 private:
  sigset_t mask_{};
};

TEST_CASE("row '--ignore-signal=CHLD': what we inherit blocked or ignored and cannot live with is reset") {
  const OwnSignals own;
  ::signal(SIGCHLD, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  block_signals({SIGTERM, SIGALRM});
  reset_inherited_signals();
  for (const int number : {SIGCHLD, SIGPIPE}) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    CHECK((action.sa_handler == SIG_DFL));
  }
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  CHECK(::sigisemptyset(&blocked));
}

TEST_CASE("a signal that is passed on keeps its origin") {
  const OwnSignals own;
  block_signals({SIGUSR1});
  const UniqueFd signals = open_signal_fd({SIGUSR1}), self = open_pidfd(::getpid());
  for (const bool from_terminal : {true, false}) {
    pass_signal(self, {SIGUSR1, from_terminal});
    const std::vector<ReceivedSignal> read = read_signals(signals.get());
    REQUIRE(read.size() == 1);
    CHECK(read.front().number == SIGUSR1);
    CHECK(read.front().from_terminal == from_terminal);
  }
  send_signal(self, SIGUSR1);
  CHECK_FALSE(read_signals(signals.get()).at(0).from_terminal);
}

TEST_CASE("row 'timeout -s INT': the same signal within a second is one signal") {
  SignalRepeats repeats;
  CHECK_FALSE(repeats.is_repeat({SIGINT}, at(0ms)));
  CHECK(repeats.is_repeat({SIGINT}, at(1ms)));
  CHECK(repeats.is_repeat({SIGINT}, at(999ms)));
  CHECK_FALSE(repeats.is_repeat({SIGINT}, at(1000ms)));
  CHECK_FALSE(repeats.is_repeat({SIGTERM}, at(1001ms)));
}

TEST_CASE(
    "hunt 19: a SIGINT that no key has sent, soon after another signal that ends a run, asks for nothing new") {
  for (const int first : {SIGHUP, SIGTERM, SIGINT}) {
    SignalRepeats repeats;
    CHECK_FALSE(repeats.is_repeat({first, first == SIGINT}, at(0ms)));
    CHECK_FALSE(repeats.is_repeat({first == SIGHUP ? SIGTERM : SIGHUP}, at(150ms)));
    CHECK(repeats.is_repeat({SIGINT}, at(300ms)));
    CHECK_FALSE(repeats.is_repeat({SIGINT, true}, at(450ms)));
  }
}

TEST_CASE(
    "two key presses are two signals, however quick they come, and whoever else sends the first one again") {
  SignalRepeats repeats;
  CHECK_FALSE(repeats.is_repeat({SIGINT, true}, at(0ms)));
  CHECK(repeats.is_repeat({SIGINT}, at(1ms)));  // timeout(1) passes the key's signal on
  CHECK(repeats.is_repeat({SIGINT}, at(2ms)));
  CHECK_FALSE(repeats.is_repeat({SIGINT, true}, at(150ms)));
}

TEST_CASE("a key press is the same signal when timeout(1) is quicker than the terminal") {
  SignalRepeats repeats;
  CHECK_FALSE(repeats.is_repeat({SIGINT}, at(0ms)));
  CHECK(repeats.is_repeat({SIGINT, true}, at(1ms)));
  CHECK_FALSE(repeats.is_repeat({SIGINT, true}, at(150ms)));
}

TEST_CASE("signals that end no run are passed on as often as they come") {
  SignalRepeats repeats;
  for (const int number : {SIGUSR1, SIGQUIT, SIGTSTP, SIGCONT}) {
    CHECK_FALSE(repeats.is_repeat({number}, at(0ms)));
    CHECK_FALSE(repeats.is_repeat({number}, at(1ms)));
  }
}

TEST_CASE("of a process that is gone nothing is known") {
  CHECK_FALSE(would_end(std::vector<std::string>{""}, SIGUSR1));
  CHECK_FALSE(would_end(pid_t{0}, SIGUSR1));
}

TEST_CASE("this process is ended by what it does not handle") {
  ::signal(SIGUSR2, SIG_DFL);
  CHECK(would_end(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, SIG_IGN);
  CHECK_FALSE(would_end(::getpid(), SIGUSR2));
  ::signal(SIGUSR2, SIG_DFL);
}

TEST_CASE("a signal that this process blocks is pending once it was sent") {
  const OwnSignals own;
  block_signals({SIGUSR2});
  CHECK_FALSE(is_pending(::getpid(), SIGUSR2));
  ::kill(::getpid(), SIGUSR2);
  CHECK(is_pending(::getpid(), SIGUSR2));
  CHECK_FALSE(is_pending(::getpid(), SIGUSR1));
  read_signals(open_signal_fd({SIGUSR2}).get());
  CHECK_FALSE(is_pending(::getpid(), SIGUSR2));
}

TEST_CASE("hunt 1: a signal that only the main thread blocks goes to another thread, and ends this process") {
  const OwnSignals own;
  ::signal(SIGUSR2, SIG_DFL);
  std::promise<void> end;
  std::thread other([&] { end.get_future().wait(); });
  block_signals({SIGUSR2});
  CHECK(would_end(::getpid(), SIGUSR2));
  end.set_value();
  other.join();
  CHECK_FALSE(would_end(::getpid(), SIGUSR2));
}

}  // namespace
}  // namespace fleetrun::launch::signals_test
