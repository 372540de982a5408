#include "base/system/signal_thread.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

namespace fleetrun::signal_thread_test {
namespace {

std::atomic<pid_t> handled_by{0};

TEST_CASE(
    "a handler runs on the thread of the signals, neither on the first one nor on one that it has started") {
  const pid_t child = ::fork();
  if (child == 0) {
    take_signals_on_own_thread();
    std::atomic<pid_t> other{0};
    std::thread([&] {
      other = ::gettid();
      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
    }).detach();
    std::signal(SIGUSR1, [](int) { handled_by = ::gettid(); });
    ::kill(::getpid(), SIGUSR1);
    while (handled_by == 0 || other == 0) std::this_thread::yield();
    ::_exit(handled_by != ::gettid() && handled_by != other ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace fleetrun::signal_thread_test
