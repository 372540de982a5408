#include "launch/process/terminal_loan.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace fleetrun::launch {
namespace {

pid_t group_of_front() { return ::getpgid(::getppid()); }

}  // namespace

bool TerminalLoan::is_possible() {
  return ::isatty(STDIN_FILENO) == 1 && ::tcgetpgrp(STDIN_FILENO) == group_of_front();
}

void TerminalLoan::lend(pid_t group) {
  if (!settings_) {
    termios settings{};
    if (::tcgetattr(STDIN_FILENO, &settings) == 0) settings_ = settings;
  }
  if (is_possible()) ::tcsetpgrp(STDIN_FILENO, group);  // SIGTTOU is ignored here (guardian.cpp)
  group_ = group;
}

bool TerminalLoan::is_lent() const { return group_ >= 0 && ::tcgetpgrp(STDIN_FILENO) == group_; }

void TerminalLoan::take_back() {
  if (group_ < 0) return;
  const bool has_it = is_lent();
  group_ = -1;
  if (!has_it) return;
  if (settings_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*settings_);
  ::tcsetpgrp(STDIN_FILENO, group_of_front());
}

int take_stop(int leader_pidfd) {
  siginfo_t info{};
  const bool waited = ::waitid(P_PIDFD, static_cast<id_t>(leader_pidfd), &info, WSTOPPED | WNOHANG) == 0;
  return waited && info.si_pid != 0 ? info.si_status : 0;
}

}  // namespace fleetrun::launch
