#include "launch/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include <boost/asio/io_context.hpp>
#include <boost/process/v2/posix/default_launcher.hpp>
#include <boost/process/v2/process.hpp>

#include "launch/pidfd.h"

namespace fleetrun::launch {
namespace {

namespace process = boost::process::v2;

// Runs in the child between fork and exec: system calls only.
struct ChildSetup {
  const SpawnRequest& request;
  pid_t parent;

  template <typename... Ignored>
  process::error_code on_exec_setup(Ignored&&...) const {
    if (set_up()) return {};
    return {errno, boost::system::system_category()};
  }

  // The launcher would call exit() and run the parent's exit handlers in the child.
  template <typename... Ignored>
  void on_exec_error(Ignored&&...) const {
    ::_exit(127);
  }

 private:
  bool set_up() const {
    return ::setpgid(0, 0) == 0 && die_with_parent() && reset_signals() && place_descriptors();
  }

  // The parent may have gone before the request was in force: then nobody would ever end us.
  bool die_with_parent() const {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    errno = ESRCH;
    return ::getppid() == parent;
  }

  static bool reset_signals() {
    for (int number = 1; number < NSIG; ++number) {
      struct sigaction action {};
      if (::sigaction(number, nullptr, &action) != 0) continue;  // numbers that libc keeps for itself
      if (number == SIGHUP && action.sa_handler == SIG_IGN) continue;
      action = {};
      action.sa_handler = SIG_DFL;
      ::sigaction(number, &action, nullptr);
    }
    sigset_t none;
    ::sigemptyset(&none);
    return ::pthread_sigmask(SIG_SETMASK, &none, nullptr) == 0;
  }

  // Boost 1.81 closes only what lies above the highest descriptor on its list, so mark them all here.
  bool place_descriptors() const {
    if (::dup2(request.input_fd, STDIN_FILENO) < 0 || ::dup2(request.output_fd, STDOUT_FILENO) < 0 ||
        ::dup2(request.output_fd, STDERR_FILENO) < 0)
      return false;
    if (::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
    for (const int fd : request.inherited_fds)
      if (::fcntl(fd, F_SETFD, 0) != 0) return false;
    return true;
  }
};

}  // namespace

SpawnResult spawn(const SpawnRequest& request) {
  std::vector<const char*> argv;
  for (const std::string& argument : request.argv) argv.push_back(argument.c_str());
  argv.push_back(nullptr);
  std::vector<const char*> environment;
  for (const std::string& line : request.environment) environment.push_back(line.c_str());
  environment.push_back(nullptr);

  boost::asio::io_context unused;  // Boost.Process wants one; our own loop watches the pidfd
  process::posix::default_launcher launcher;
  launcher.env = environment.data();
  launcher.fd_whitelist.insert(launcher.fd_whitelist.end(), request.inherited_fds.begin(),
                               request.inherited_fds.end());
  process::error_code problem;
  auto child = launcher(unused.get_executor(), problem, process::filesystem::path(request.executable),
                        argv.data(), ChildSetup{request, ::getpid()});
  SpawnResult result;
  if (problem) {
    result.error = problem.value();
    // Boost 1.81 leaves a child that could not exec to the caller, as a zombie.
    if (launcher.pid > 0) ::waitpid(launcher.pid, nullptr, 0);
    return result;
  }
  result.pid = launcher.pid;
  result.pidfd = open_pidfd(result.pid);
  child.detach();
  if (!result.pidfd) {
    result.error = errno;
    ::kill(result.pid, SIGKILL);  // still our unreaped child
    ::waitpid(result.pid, nullptr, 0);
  }
  return result;
}

}  // namespace fleetrun::launch
