#include "launch/process/start_program.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/optional.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/stdio.hpp>

#include "base/error/error.h"
#include "launch/process/descriptors.h"

namespace fleetrun::launch {
namespace {

namespace process = boost::process::v2;
using boost::system::error_code;

constexpr int kNotStarted = 127;  // the exit code of a child that executes nothing, as in shells

error_code last_error() { return {errno, boost::system::system_category()}; }

// What Boost.Process does not do by itself in the child, between fork and exec.
struct OurChild {
  pid_t parent;
  rlim_t most_output;
  std::vector<std::string> environment;
  std::vector<const char*> words = {};  // of the environment, as exec takes them

  error_code on_setup(process::posix::default_launcher& launcher, const std::filesystem::path&,
                      const char* const*&) {
    for (const std::string& line : environment) words.push_back(line.c_str());
    words.push_back(nullptr);
    launcher.env = words.data();
    return {};
  }

  error_code on_exec_setup(process::posix::default_launcher&, const std::filesystem::path&,
                           const char* const*&) const {
    sigset_t none;
    ::sigemptyset(&none);
    rlimit limit{};
    if (::setpgid(0, 0) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
        ::getrlimit(RLIMIT_FSIZE, &limit) != 0)
      return last_error();
    if (::getppid() != parent) return {ESRCH, boost::system::system_category()};
    limit.rlim_cur = std::min({limit.rlim_cur, limit.rlim_max, most_output});
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || ::pthread_sigmask(SIG_SETMASK, &none, nullptr) != 0)
      return last_error();
    return {};
  }

  // Boost.Process would call exit(), which flushes and destroys what is the launcher's.
  template <typename... All>
  void on_exec_error(All&&...) const {
    ::_exit(kNotStarted);
  }
};

// Boost.Process lets an exception out of the child, too, when its io_context cannot follow the fork.
void leave_if_child_of(pid_t parent) {
  if (::getpid() != parent) ::_exit(kNotStarted);
}

}  // namespace

// Detaches the process from Boost's object: whoever called us waits for its end.
pid_t start_program(EventLoop& loop, const StartRequest& request) {
  const pid_t us = ::getpid();
  const std::vector<std::string> arguments(request.command.begin() + 1, request.command.end());
  close_on_exec_from(STDERR_FILENO + 1);  // Boost.Process 1.81 leaves some open
  try {
    process::process started(loop.context(), request.command.front(), arguments,
                             process::process_stdio{request.input_fd, request.output_fd, request.error_fd},
                             OurChild{us, request.most_output, request.environment});
    const pid_t pid = started.id();
    started.detach();
    return pid;
  } catch (const boost::system::system_error& error) {
    leave_if_child_of(us);
    throw Error(ErrorKind::os, fmt::format("starting {}: {}", request.command.front(),
                                           describe_errno(error.code().value())));
  } catch (...) {
    leave_if_child_of(us);
    throw;
  }
}

}  // namespace fleetrun::launch
