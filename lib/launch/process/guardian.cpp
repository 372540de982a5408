#include "launch/process/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/error/library_error.h"
#include "base/error/log.h"
#include "base/system/colours.h"
#include "base/system/pipe.h"
#include "base/system/unique_fd.h"
#include "launch/process/exit_status.h"
#include "launch/process/orphans.h"
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

constexpr auto kSweepPatience = std::chrono::seconds(5);  // for processes that were killed to be gone

// Returns its exit code.
int print_error(const Error& error) {
  print_problem(error);
  return error.exit_code();
}

[[noreturn]] void run_middle(pid_t front, Pipe pipe, const std::function<int(int)>& middle) {
  pipe.write_end.reset();
  ::setpgid(0, 0);             // the terminal's Ctrl-C goes to the front process, which passes it on
  ::signal(SIGTTOU, SIG_IGN);  // in the background of the terminal, and allowed to write there
  int code = 0;
  try {
    become_subreaper();
    code = middle(pipe.read_end.get());
  } catch (const Error& error) {
    code = print_error(error);
  } catch (const std::exception& error) {
    code = print_error(error_of_library(error));
  }
  // A front that Ctrl-Z stopped would never learn of an end that came meanwhile: by `fleetrun stop`, or a rank that was killed.
  if (::getppid() == front) ::kill(front, SIGCONT);
  ::_exit(code);
}

bool has_ended(const UniqueFd& pidfd) {
  siginfo_t info{};
  return ::waitid(P_PIDFD, static_cast<id_t>(pidfd.get()), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

// Our children that are not of this run: the shell that became us by `exec` may have had some, and we inherit
// the processes that they leave. While the middle process lives, it inherits those that the workers leave. Reaps those that ended.
class EarlierChildren {
 public:
  void look(pid_t middle, const UniqueFd& pidfd) {
    if (has_ended(pidfd)) return;
    std::vector<pid_t> children = find_children();
    std::erase(children, middle);
    if (has_ended(pidfd)) return;  // what it left may be among them
    std::erase_if(children, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
    pids_ = std::move(children);
  }
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  std::vector<pid_t> pids_;
};

using Lost = std::function<void(const ExitStatus&)>;

int end_of_middle(int pidfd, const EarlierChildren& earlier, const Lost& lost) {
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED) != 0)
    throw Error(ErrorKind::internal,
                fmt::format("waiting for the middle process: {}", describe_errno(errno)));
  const ExitStatus status = ExitStatus::from_siginfo(info);
  if (status.how == ExitStatus::How::signaled) {
    log_line("fleetrun",
             fmt::format("the supervising process {}; fleetrun ends its workers", status.describe()));
    end_all_children(kSweepPatience, earlier.pids());
    lost(status);
  }
  return status.exit_code();
}

// Blocked, and sent since we last read the signals. A stop after a SIGCONT that has come already would last for ever.
bool is_pending(int signal) {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, signal) == 1;
}

// The kernel does not stop a group of processes by a key if nobody in the session could continue it: the program is the first one of its
// terminal (`ssh -t host fleetrun`), or below a shell without job control that is (setpgid(2), "orphaned process group").
bool is_group_orphaned() {
  const pid_t group = ::getpgrp(), session = ::getsid(0);
  pid_t parent = ::getppid();
  while (parent > 0 && ::getpgid(parent) == group) {
    const auto stat = read_process_stat(parent);
    parent = stat ? stat->parent : 0;
  }
  return parent <= 0 || ::getsid(parent) != session;
}

int wait_in_front(pid_t middle, const UniqueFd& signals, const Lost& lost) {
  const UniqueFd pidfd = open_pidfd(middle);
  if (!pidfd)
    throw Error(ErrorKind::os, fmt::format("watching the middle process: {}", describe_errno(errno)));
  EarlierChildren earlier;
  earlier.look(middle, pidfd);
  std::array<pollfd, 2> events = {pollfd{.fd = pidfd.get(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = signals.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (::poll(events.data(), events.size(), -1) < 0 && errno != EINTR)
      throw Error(ErrorKind::os, fmt::format("waiting for the middle process: {}", describe_errno(errno)));
    for (const ReceivedSignal& signal : read_signals(signals.get())) {
      if (signal.number == SIGTSTP && signal.from_terminal && is_group_orphaned()) continue;
      if (signal.number == SIGCHLD)
        earlier.look(middle, pidfd);  // as process 1 of a container we get those of everybody
      else
        pass_signal(pidfd, signal);
      if (signal.number == SIGTSTP && !has_ended(pidfd) && !is_pending(SIGCONT))
        ::raise(SIGSTOP);  // the shell is to see us stopped, as it asked
    }
    if (events[0].revents != 0) return end_of_middle(pidfd.get(), earlier, lost);
  }
}

// Asked before anything runs that would have to be watched.
void require_pidfd() {
  if (open_pidfd(::getpid())) return;
  throw Error(
      ErrorKind::os, fmt::format("pidfd_open: {}", describe_errno(errno)),
      "fleetrun watches processes by pidfd_open(2), which Linux has since 5.3; the seccomp profile of a container must allow it");
}

}  // namespace

int run_guarded(const std::function<int(int front_fd)>& middle, const Lost& lost) {
  require_pidfd();
  Pipe pipe = make_pipe();
  const std::vector<int> handled = handled_signals();
  block_signals(handled);      // also in the middle process until it has its own descriptor for them
  ::signal(SIGPIPE, SIG_IGN);  // a reader of our output may go away
  const UniqueFd signals = open_signal_fd(handled);
  become_subreaper();
  std::fflush(nullptr);  // or both processes would write it
  const pid_t front = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw Error(ErrorKind::os, fmt::format("fork: {}", describe_errno(errno)));
  if (pid == 0) run_middle(front, std::move(pipe), middle);
  ::setpgid(pid, pid);  // whoever comes first
  pipe.read_end.reset();
  return wait_in_front(pid, signals, lost);
}

}  // namespace fleetrun::launch
