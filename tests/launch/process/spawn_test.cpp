#include "launch/process/spawn.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <doctest/doctest.h>

#include "launch/process/orphans.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::spawn_test {
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
  CHECK(find_children().empty());
}

TEST_CASE("of programs that start at one time none is left behind the first that cannot be executed") {
  const Output output;
  const UniqueFd fd = output.open();
  const auto program = [&](const char* path) {
    return SpawnRequest{.executable = path, .argv = {"x", "100"}, .output_fd = fd.get()};
  };
  const std::vector<SpawnResult> results =
      spawn_all({program("/bin/sleep"), program("/no/such"), program("/bin/sleep"), program("/no/such")});
  REQUIRE(results.size() == 2);
  CHECK(results[0].error == 0);
  CHECK(results[1].error == ENOENT);
  CHECK(find_children() == std::vector<pid_t>{results[0].pid});
  ::kill(results[0].pid, SIGKILL);
  code_of(results[0].pid);
}

TEST_CASE("programs that start at one time do not mix up their errors") {
  const Output output;
  output.folder.write("plain", "text");
  const UniqueFd fd = output.open();
  std::vector<SpawnRequest> requests(32);
  for (std::size_t i = 0; i < requests.size(); ++i)
    requests[i] = {.executable = i % 2 == 0 ? output.folder / "plain" : "/no/such",
                   .argv = {"x"},
                   .output_fd = i == 31 ? 9999 : fd.get()};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::vector<SpawnResult> results =
        spawn_all({requests.begin() + static_cast<std::ptrdiff_t>(i), requests.end()});
    REQUIRE(results.size() == 1);
    CHECK(results.front().error == (i == 31 ? EBADF : i % 2 == 0 ? EACCES : ENOENT));
  }
  CHECK(find_children().empty());
}

TEST_CASE("a program has no signal blocked, and none ignored but a hangup") {
  const Output output;
  const UniqueFd fd = output.open();
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGPIPE, SIG_IGN);
  const SpawnResult result = spawn({.executable = "/bin/grep",
                                    .argv = {"grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"},
                                    .output_fd = fd.get()});
  ::signal(SIGHUP, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  REQUIRE(result.error == 0);
  CHECK(code_of(result.pid) == 0);
  CHECK(output.folder.read("out") == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n");
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
}  // namespace fleetrun::launch::spawn_test
