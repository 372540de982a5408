#include "launch/host/limits.h"

#include <algorithm>
#include <cerrno>

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::limits_test {
namespace {

Environment with(const std::string& name, std::size_t bytes) {
  Environment environment;
  environment.set("HOME", "/home/me");
  environment.set(name, std::string(bytes, 'x'));
  return environment;
}

TEST_CASE("a variable or argument that is too long for Linux is named with its size") {
  CHECK_NOTHROW(check_argument_sizes({"train", std::string(131071, 'x')}, with("BIG", 131067)));
  CHECK_THROWS_WITH(check_argument_sizes({"train"}, with("BIG", 131068)),
                    "the environment variable BIG has 131072 bytes, Linux passes on at most 131071");
  CHECK_THROWS_AS(check_argument_sizes({std::string(131072, 'x')}, {}), Error);
}

TEST_CASE("an environment that is too large in all is reported with its largest part") {
  CHECK(
      describe_spawn_limit(E2BIG, {"train", "x"}, with("BIG", 1000)) ==
      "arguments have 8 bytes and the environment 1019, most of them in BIG (1004); Linux passes on a quarter of the "
      "stack limit (ulimit -s)");
}

TEST_CASE("an error that has nothing to do with limits has no words") {
  CHECK(describe_spawn_limit(ENOENT, {"train"}, {}).empty());
  CHECK(describe_death_limit({ExitStatus::How::exited, SIGXCPU}, 1e9, {}).empty());
  CHECK(describe_death_limit({ExitStatus::How::signaled, SIGTERM}, 1e9, {}).empty());
  CHECK(describe_death_limit({ExitStatus::How::signaled, SIGKILL}, 1e9, {}).empty());
}

TEST_CASE("hunt 15: of several limits of processes the lowest is named, which a run reaches first") {
  const ProcessLimit user = {96365, "this user", "ulimit -u"},
                     machine = {320, "this machine", "kernel.pid_max"},
                     cgroup = {20, "this cgroup", "pids.max in /sys/fs/cgroup/a"};
  CHECK(describe_lowest({}).empty());
  CHECK(describe_lowest({user}) == "this user may have 96365 processes (ulimit -u)");
  CHECK(describe_lowest({user, machine}) == "this machine may have 320 processes (kernel.pid_max)");
  CHECK(describe_lowest({cgroup, user, machine}) ==
        "this cgroup may have 20 processes (pids.max in /sys/fs/cgroup/a)");
  CHECK(describe_spawn_limit(EAGAIN, {"train"}, {}).find(" processes (") != std::string::npos);
}

TEST_CASE(
    "a node that may take over gets descriptors for the other nodes, and begins also if there are too few") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto limit_for = [&](const DescriptorUsers& users) {
    const rlimit low = {.rlim_cur = 16, .rlim_max = before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    raise_descriptor_limit(users);
    rlimit raised{};
    ::getrlimit(RLIMIT_NOFILE, &raised);
    ::setrlimit(RLIMIT_NOFILE, &before);
    return raised.rlim_cur;
  };
  const auto alone = limit_for({.ranks = 1});
  CHECK(limit_for({.ranks = 1, .nodes_later = 20, .ranks_elsewhere = 30}) ==
        std::min(alone + 50, before.rlim_max));
  CHECK(limit_for({.ranks = 1, .nodes_later = 1 << 30}) == std::min(alone + (1 << 30), before.rlim_max));
}

TEST_CASE("a process that a limit ended is reported with that limit") {
  const DeadlyLimits limits = {.file_bytes = 4096, .cpu_seconds = 1000, .hard_cpu_seconds = 2000};
  CHECK(describe_death_limit({ExitStatus::How::signaled, SIGXCPU}, 1000, limits) ==
        "a process may take 1000 s of processor time (ulimit -t)");
  CHECK(describe_death_limit({ExitStatus::How::signaled, SIGKILL}, 2000, limits) ==
        "a process may take 2000 s of processor time (ulimit -t)");
  CHECK(describe_death_limit({ExitStatus::How::signaled, SIGXCPU}, 1000, {}).empty());  // hunt 69: no limit
  CHECK_FALSE(describe_death_limit({ExitStatus::How::signaled, SIGKILL}, 1950, limits).empty());  // by ticks
  CHECK(describe_death_limit({ExitStatus::How::signaled, SIGKILL}, 1800, limits).empty());
  CHECK(describe_death_limit({ExitStatus::How::signaled, SIGXFSZ}, 0, limits) ==
        "files may have 4096 bytes (ulimit -f)");
}

}  // namespace
}  // namespace fleetrun::launch::limits_test
