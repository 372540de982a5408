#include "launch/process/orphans.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <csignal>

#include <doctest/doctest.h>

#include "launch/process/spawn.h"

namespace fleetrun::launch::orphans_test {
namespace {

TEST_CASE("low: without /proc a search may outlast the patience; what it finds is killed all the same") {
  const UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const SpawnResult child =
      spawn({.executable = "/bin/sleep", .argv = {"sleep", "5"}, .output_fd = nowhere.get()});
  REQUIRE(child.error == 0);
  end_all_children(std::chrono::seconds(0));
  int status = 0;
  const bool reaped = ::waitpid(child.pid, &status, 0) != child.pid;
  CHECK((reaped || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)));
}

}  // namespace
}  // namespace fleetrun::launch::orphans_test
