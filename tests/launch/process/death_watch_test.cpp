#include "launch/process/death_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <random>

#include <doctest/doctest.h>

#include "launch/process/orphans.h"
#include "launch/process/pidfd.h"
#include "launch/process/spawn.h"

namespace fleetrun::launch::death_watch_test {
namespace {

// Processes that wait for their end.
struct Children {
  explicit Children(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      pids.push_back(::fork());
      if (pids.back() == 0)
        while (true) ::pause();
      pidfds.push_back(open_pidfd(pids.back()));
    }
  }
  ~Children() {
    for (const pid_t pid : pids) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  void end(std::size_t child) const {
    send_signal(pidfds[child], SIGKILL);
    pollfd one{.fd = pidfds[child].get(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&one, 1, 10000) == 1);
  }

  std::vector<pid_t> pids;
  std::vector<UniqueFd> pidfds;
};

std::vector<std::size_t> shuffled(std::size_t count, unsigned seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

TEST_CASE("deaths come in the order in which they happened, more of them than fit into one look") {
  constexpr std::size_t kMany = 150;
  for (unsigned seed = 0; seed < 3; ++seed) {
    const Children children(kMany);
    DeathWatch deaths;
    for (std::size_t i = 0; i < kMany; ++i) REQUIRE(deaths.watch(children.pidfds[i], i) == 0);
    const std::vector<std::size_t> order = shuffled(kMany, seed);
    for (const std::size_t child : order) children.end(child);
    CHECK(deaths.take() == order);
    CHECK(deaths.take().empty());
  }
}

TEST_CASE("the order holds over several looks") {
  const Children children(4);
  DeathWatch deaths;
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(deaths.watch(children.pidfds[i], i) == 0);
  CHECK(deaths.take().empty());
  children.end(2);
  CHECK(deaths.take() == std::vector<std::size_t>{2});
  children.end(3);
  children.end(0);
  CHECK(deaths.take() == std::vector<std::size_t>{3, 0});
}

TEST_CASE("a forgotten process is not told, and its descriptor can be closed") {
  Children children(2);
  DeathWatch deaths;
  for (std::size_t i = 0; i < 2; ++i) REQUIRE(deaths.watch(children.pidfds[i], i) == 0);
  children.end(0);
  children.end(1);
  deaths.forget(children.pidfds[0]);
  children.pidfds[0].reset();
  CHECK(deaths.take() == std::vector<std::size_t>{1});
}

TEST_CASE("what cannot be watched is an error number") {
  DeathWatch deaths;
  CHECK(deaths.watch(UniqueFd(), 0) == EBADF);
}

TEST_CASE("of programs that die as soon as they are started none is missed, and none told twice") {
  constexpr std::size_t kMany = 100;
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const std::vector<SpawnRequest> requests(
      kMany, {.executable = "/bin/true", .argv = {"true"}, .output_fd = nothing.get()});
  DeathWatch deaths;
  const std::vector<SpawnResult> results = spawn_all(requests, &deaths);
  REQUIRE(results.size() == kMany);
  std::vector<std::size_t> died;
  while (died.size() < kMany) {
    pollfd one{.fd = deaths.fd(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&one, 1, 10000) == 1);
    for (const std::size_t child : deaths.take()) {
      died.push_back(child);
      deaths.forget(results[child].pidfd);  // newer kernels tell the reaping, too
    }
  }
  for (const SpawnResult& result : results) ::waitpid(result.pid, nullptr, 0);
  std::sort(died.begin(), died.end());
  CHECK(std::adjacent_find(died.begin(), died.end()) == died.end());
}

TEST_CASE("a program that cannot be watched is not run") {
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  DeathWatch broken;
  ::dup2(nothing.get(), broken.fd());
  const std::vector<SpawnResult> results =
      spawn_all({{.executable = "/bin/true", .argv = {"true"}, .output_fd = nothing.get()}}, &broken);
  REQUIRE(results.size() == 1);
  CHECK(results.front().error == EINVAL);
  CHECK(find_children().empty());
}

}  // namespace
}  // namespace fleetrun::launch::death_watch_test
