#include "launch/process/shells.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/system/unique_fd.h"
#include "launch/process/signals.h"

namespace fleetrun::launch::shells_test {
namespace {

// A program in a session of its own, without a terminal. It has printed something into a pipe that this process reads, and waits.
class Running {
 public:
  explicit Running(std::vector<const char*> words) {
    words.push_back(nullptr);
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    output_ = UniqueFd(ends[0]);
    const UniqueFd printed(ends[1]);
    pid = ::fork();
    if (pid == 0) {
      ::setsid();
      ::dup2(printed.get(), STDOUT_FILENO);
      ::execvp(words.front(), const_cast<char**>(words.data()));
      ::_exit(127);
    }
    char first = 0;
    REQUIRE(::read(output_.get(), &first, 1) == 1);
  }
  ~Running() {
    ::killpg(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid = -1;

 private:
  UniqueFd output_;
};

const char* const kScript = "echo up; sleep 100; :";

TEST_CASE("a shell is known by its program, and an interactive one by its flags") {
  const Running bash({"bash", "-c", kScript}), interactive({"bash", "--norc", "-ic", kScript}),
      dash({"sh", "-c", kScript}), perl({"perl", "-e", "$| = 1; print 'up'; sleep 100"});
  CHECK(is_shell(bash.pid));
  CHECK(is_shell(interactive.pid));
  CHECK(is_shell(dash.pid));
  CHECK_FALSE(is_shell(perl.pid));
  CHECK(is_interactive_shell(interactive.pid));
  CHECK_FALSE(is_interactive_shell(bash.pid));
  CHECK_FALSE(is_interactive_shell(perl.pid));
  CHECK_FALSE(is_shell(0));
}

TEST_CASE("hunt 150: programs in the foreground of a shell are told from those in its background") {
  const char* const program = "$0 -c 'echo up; sleep 100; :'";
  for (const char* const shell : {"sh", "bash"}) {
    CAPTURE(shell);
    const std::string in_front = std::string(program) + "; :", behind = std::string(program) + " & wait";
    const Running front({shell, "-c", in_front.c_str(), shell}), back({shell, "-c", behind.c_str(), shell}),
        other({"perl", "-e", "system(q(sh -c 'echo up; sleep 100; :'))"});
    CHECK(foreground_of(front.pid).size() == 1);
    CHECK(foreground_of(back.pid).empty());
    CHECK(foreground_of(other.pid).empty());
  }
}

TEST_CASE(
    "who has the other end of the pipe reads what a process prints, and who prints into it, too, does not") {
  const Running one({"bash", "-c", kScript}), other({"bash", "-c", kScript});
  CHECK(reads_output_of(::getpid(), one.pid));
  CHECK_FALSE(reads_output_of(one.pid, one.pid));
  CHECK_FALSE(reads_output_of(other.pid, one.pid));
}

TEST_CASE(
    "hunt 105: a shell that blocks SIGTERM, as bash does while it starts a program, has no handler for it") {
  const char* const block = "use POSIX; sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGTERM)); ";
  const std::string exec = std::string(block) + "exec 'bash', '-c', 'echo up; sleep 100; :'",
                    wait = std::string(block) + "$| = 1; print 'up'; sleep 100";
  const Running bash({"perl", "-e", exec.c_str()}), perl({"perl", "-e", wait.c_str()}),
      trap({"bash", "-c", "trap 'exit 0' TERM; echo up; sleep 100; :"});
  CHECK_FALSE(handles(bash.pid, SIGTERM));
  CHECK(handles(perl.pid, SIGTERM));
  CHECK(handles(trap.pid, SIGTERM));
}

}  // namespace
}  // namespace fleetrun::launch::shells_test
