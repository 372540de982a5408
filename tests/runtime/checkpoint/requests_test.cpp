#include "runtime/checkpoint/requests.h"

#include <doctest/doctest.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>

#include "base/run/timeline.h"

namespace fleetrun::runtime::requests_test {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// How a process ends that does this: as waitpid tells.
int ending_of(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("the SIGTERMs of a whole service, to launcher and ranks, are one wish to stop") {
  const int status = ending_of([] {
    listen_for_stop_requests();
    if (take_requests().stop) return 1;
    for (int i = 0; i < 3; ++i) std::raise(SIGTERM);
    return take_requests().stop && take_requests().stop ? 0 : 2;
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a SIGTERM more than a second later ends the process, and so does the end of a stop") {
  const int later = ending_of([] {
    listen_for_stop_requests();
    const std::int64_t start = monotonic_ns();
    std::raise(SIGTERM);
    while (monotonic_ns() - start < 1100 * kMs)
      ::usleep(10'000);  // the handler compares real times 1 s apart
    std::raise(SIGTERM);
    return 0;
  });
  CHECK(WIFSIGNALED(later));
  CHECK(WTERMSIG(later) == SIGTERM);
  const int stopped = ending_of([] {
    listen_for_stop_requests();
    std::raise(SIGTERM);
    die_of(SIGTERM);
    return 0;
  });
  CHECK(WIFSIGNALED(stopped));
  CHECK(WTERMSIG(stopped) == SIGTERM);
}

TEST_CASE("after a stop a rank that was asked ends at once, another one when it is asked as well") {
  const std::int64_t start = monotonic_ns();
  const int asked = ending_of([] {
    listen_for_stop_requests();
    std::raise(SIGTERM);
    end_stopped_rank(std::chrono::minutes(1));
    return 0;
  });
  CHECK(WIFSIGNALED(asked));
  const int other = ending_of([] {
    listen_for_stop_requests();
    std::signal(SIGALRM, [](int) { std::raise(SIGTERM); });  // as the launcher, after the first one's end
    const itimerval soon = {.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 100'000}};
    ::setitimer(ITIMER_REAL, &soon, nullptr);
    end_stopped_rank(std::chrono::minutes(1));
    return 0;
  });
  CHECK(WIFSIGNALED(other));
  CHECK(WTERMSIG(other) == SIGTERM);
  CHECK(monotonic_ns() - start >= 100 * kMs);
  CHECK(monotonic_ns() - start < 30'000 * kMs);
}

TEST_CASE("hunt 15: a rank that SIGINT has stopped ends by SIGINT") {
  const int status = ending_of([] {
    listen_for_stop_requests();
    std::raise(SIGINT);
    end_stopped_rank(std::chrono::minutes(1));
    return 0;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("a rank that was not asked to stop waits no longer than it should") {
  const std::int64_t start = monotonic_ns();
  const int status = ending_of([] {
    listen_for_stop_requests();
    end_stopped_rank(std::chrono::milliseconds(50));
    return 0;
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGTERM);
  CHECK(monotonic_ns() - start >= 50 * kMs);
}

TEST_CASE("a signal that reaches this rank just after another one's save asks for nothing new") {
  SaveRequests requests;
  CHECK_FALSE(requests.is_new(false, 0));
  requests.answered(false, 0);
  CHECK_FALSE(requests.is_new(false, 5 * kMs));
  CHECK_FALSE(requests.is_new(true, 10 * kMs));
  CHECK(requests.is_new(true, 15 * kMs));  // a second one does
}

TEST_CASE("the signal may come during the next step, however long that is, but not much later") {
  SaveRequests requests;
  requests.answered(false, 0);
  CHECK_FALSE(requests.is_new(true, 60'000 * kMs));
  requests.answered(false, 60'000 * kMs);
  CHECK_FALSE(requests.is_new(false, 62'000 * kMs));
  CHECK(requests.is_new(true, 62'001 * kMs));
}

TEST_CASE("who asked for the save itself is asked for another one by the next signal") {
  SaveRequests requests;
  CHECK(requests.is_new(true, 0));
  requests.answered(true, 0);
  CHECK(requests.is_new(true, kMs));
}

}  // namespace
}  // namespace fleetrun::runtime::requests_test
