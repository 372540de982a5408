#include "launch/spawn.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <doctest/doctest.h>

#include "launch/orphans.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch {
namespace {

struct Output {
  UniqueFd open() const {
    return UniqueFd(::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  }
  TemporaryFolder folder;
};

int code_of(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

TEST_CASE("a program runs with exactly the words and variables given, in a process group of its own") {
  const Output output;
  const UniqueFd fd = output.open();
  SpawnResult result = spawn({.executable = "/bin/sh",
                              .argv = {"name", "-c", "echo $0 $1 $A; exit 5", "zero", "one"},
                              .environment = {"A=b", "PATH=/usr/bin:/bin"},
                              .output_fd = fd.get()});
  REQUIRE(result.error == 0);
  CHECK(result.pidfd);
  CHECK(::getpgid(result.pid) == result.pid);
  CHECK(code_of(result.pid) == 5);
  CHECK(output.folder.read("out") == "zero one b\n");
}

TEST_CASE("a program that cannot be executed is a value, and no process stays") {
  const Output output;
  output.folder.write("plain", "text");
  const UniqueFd fd = output.open();
  CHECK(spawn({.executable = "/no/such", .argv = {"x"}, .output_fd = fd.get()}).error == ENOENT);
  CHECK(spawn({.executable = output.folder / "plain", .argv = {"x"}, .output_fd = fd.get()}).error == EACCES);
  CHECK(spawn({.executable = "/bin/true", .argv = {"x"}, .output_fd = 9999}).error == EBADF);
  CHECK(list_children().empty());
}

TEST_CASE("only listed descriptors are passed on") {
  const Output output;
  const UniqueFd fd = output.open();
  const UniqueFd passed(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd kept(::open("/dev/null", O_RDONLY));  // not even close-on-exec
  const SpawnResult result =
      spawn({.executable = "/bin/sh",
             .argv = {"sh", "-c",
                      "for fd in " + std::to_string(passed.get()) + " " + std::to_string(kept.get()) +
                          "; do [ -e /proc/self/fd/$fd ] && echo $fd; done; exit 0"},
             .environment = {"PATH=/usr/bin:/bin"},
             .output_fd = fd.get(),
             .inherited_fds = {passed.get()}});
  REQUIRE(result.error == 0);
  CHECK(code_of(result.pid) == 0);
  CHECK(output.folder.read("out") == std::to_string(passed.get()) + "\n");
}

}  // namespace
}  // namespace fleetrun::launch
