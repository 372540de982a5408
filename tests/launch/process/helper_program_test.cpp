#include "launch/process/helper_program.h"

#include <fcntl.h>
#include <poll.h>

#include <csignal>
#include <filesystem>
#include <sstream>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "launch/process/orphans.h"
#include "launch/process/pidfd.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::helper_program_test {
namespace {

// One helper that runs a shell, and its output.
struct Helper {
  ~Helper() { end_all_children(std::chrono::seconds(5)); }

  UniqueFd output_file() const {
    return UniqueFd(::open((folder / "output").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  }
  HelperRequest request(const std::string& script, const UniqueFd& output) const {
    return {.command = {"/bin/sh", "-c", script},
            .environment = environment,
            .output_fd = output.get(),
            .most_output = most_output,
            .time_limit = time_limit};
  }
  // Until it has ended.
  std::string run(const std::string& script) {
    const UniqueFd output = output_file();
    EventLoop loop;
    const HelperProgram helper(loop, request(script, output), [&] { loop.stop(); });
    loop.run();
    return folder.read("output");
  }

  TemporaryFolder folder;
  Environment environment;
  std::uint64_t most_output = 1 << 20;
  Clock::duration time_limit = std::chrono::seconds(60);
};

TEST_CASE("a helper has its environment and nothing else, and its output goes to a file") {
  Helper helper;
  helper.environment.set("PATH", "/usr/bin:/bin");
  helper.environment.set("ANSWER", "42");
  CHECK(helper.run("env | grep -v ^PWD= | grep -v ^SHLVL= | grep -v ^_= | sort; echo problem >&2; cat") ==
        "ANSWER=42\nPATH=/usr/bin:/bin\nproblem\n");
}

TEST_CASE("a helper leads a group of its own, dies with us, and blocks no signal") {
  Helper helper;
  helper.environment.set("PATH", "/usr/bin:/bin");
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
  // By exec, because dash blocks all signals of its own while it starts a program.
  const std::string text =
      helper.run("echo $$; ps -o pgid= -p $$ | tr -d ' '; exec grep SigBlk /proc/self/status");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const std::string pid = text.substr(0, text.find('\n'));
  CHECK(text == pid + "\n" + pid + "\nSigBlk:\t0000000000000000\n");
}

TEST_CASE("a helper holds no descriptor of ours") {
  Helper helper;
  helper.environment.set("PATH", "/usr/bin:/bin");
  const UniqueFd open_to_all(::open("/dev/null", O_RDONLY));  // not close-on-exec
  // 3 is the folder that ls reads. By exec, because a shell opens more while it starts a program.
  CHECK(helper.run("exec ls /proc/self/fd") == "0\n1\n2\n3\n");
}

// Waits for its end.
bool ends(pid_t pid) {
  const UniqueFd process = open_pidfd(pid);
  pollfd end{.fd = process.get(), .events = POLLIN, .revents = 0};
  return !process || ::poll(&end, 1, 10000) == 1;
}

TEST_CASE("a helper that takes too long is killed with all that it started") {
  Helper helper;
  helper.time_limit = std::chrono::milliseconds(300);
  helper.environment.set("PATH", "/usr/bin:/bin");
  std::istringstream text(helper.run("setsid sleep 1000 & echo $!; sleep 1000 & echo $!; exec sleep 1000"));
  std::vector<pid_t> descendants(2);
  for (pid_t& pid : descendants) text >> pid;
  for (const pid_t pid : descendants) {
    CHECK(pid > 0);
    CHECK(ends(pid));
  }
}

TEST_CASE("a helper that writes too much is ended") {
  Helper helper;
  helper.most_output = 4096;
  helper.environment.set("PATH", "/usr/bin:/bin");
  CHECK(helper.run("yes").size() == 4096);
}

TEST_CASE("a program that cannot be started is an error that names it, and its child leaves nothing") {
  const Helper helper;
  const UniqueFd output = helper.output_file();
  helper.folder.write("script", "#!/no/such/interpreter\n");
  std::filesystem::permissions(helper.folder / "script", std::filesystem::perms::owner_all);
  EventLoop loop;
  HelperRequest request = helper.request("", output);
  request.command = {helper.folder / "script"};
  CHECK_THROWS_WITH_AS(
      HelperProgram(loop, request, [] {}),
      ("starting " + (helper.folder / "script") + ": No such file or directory (errno 2)").c_str(), Error);
  CHECK(helper.folder.read("output") == "");
}

TEST_CASE("nobody hears of a helper whose owner has gone") {
  Helper helper;
  const UniqueFd output = helper.output_file();
  EventLoop loop;
  bool told = false;
  {
    const HelperProgram gone(loop, helper.request("exit 0", output), [&] { told = true; });
  }
  helper.run("exit 0");
  loop.call_at(Clock::now() + std::chrono::milliseconds(50), [&] { loop.stop(); });
  loop.run();
  CHECK_FALSE(told);
}

}  // namespace
}  // namespace fleetrun::launch::helper_program_test
