#include "launch/process/helper_program.h"

#include <fcntl.h>
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
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"

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

// Returns the process id and detaches the process. Nobody may wait for this id, because reap_orphans() reaps every child that is not a rank.
pid_t start(EventLoop& loop, const HelperRequest& request) {
  const pid_t us = ::getpid();
  const std::vector<std::string> arguments(request.command.begin() + 1, request.command.end());
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) throw Error(ErrorKind::os, fmt::format("opening /dev/null: {}", describe_errno(errno)));
  close_on_exec_from(STDERR_FILENO + 1);  // Boost.Process 1.81 leaves some open
  try {
    process::process started(loop.context(), request.command.front(), arguments,
                             process::process_stdio{nothing.get(), request.output_fd, request.output_fd},
                             OurChild{us, request.most_output, request.environment.lines()});
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

}  // namespace

HelperProgram::HelperProgram(EventLoop& loop, const HelperRequest& request, std::function<void()> on_end)
    : loop_(loop), on_end_(std::move(on_end)), pid_(start(loop, request)), late_(loop) {
  pidfd_ = open_pidfd(pid_);
  if (!pidfd_)
    throw Error(ErrorKind::os,
                fmt::format("watching {}: {}", request.command.front(), describe_errno(errno)));
  loop_.watch_readable(pidfd_.get(), [this] { end(); });
  late_.call_at(Clock::now() + request.time_limit, [this] { kill_tree(); });
}

HelperProgram::~HelperProgram() {
  if (pidfd_) loop_.forget(pidfd_.get());
}

// The numbers are right while it has not ended.
void HelperProgram::kill_tree() const {
  if (!pidfd_ || !send_signal(pidfd_, 0)) return;
  for (const pid_t pid : list_process_tree(pid_))
    if (const UniqueFd one = open_pidfd(pid)) send_signal(one, SIGKILL);
  ::kill(-pid_, SIGKILL);  // those that /proc did not show
}

void HelperProgram::end() {
  loop_.forget(pidfd_.get());
  pidfd_.reset();
  late_.cancel();
  const auto on_end = std::move(on_end_);  // which may end this object
  on_end();
}

}  // namespace fleetrun::launch
