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

void TerminalLoan::take_back() {
  if (group_ < 0) return;
  const bool has_it = ::tcgetpgrp(STDIN_FILENO) == group_;
  group_ = -1;
  if (!has_it) return;
  if (settings_) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &*settings_);
  ::tcsetpgrp(STDIN_FILENO, group_of_front());
}

bool has_stopped_at_key(int leader_pidfd) {
  siginfo_t info{};
  return ::waitid(P_PIDFD, static_cast<id_t>(leader_pidfd), &info, WSTOPPED | WNOHANG) == 0 &&
         info.si_pid != 0 && info.si_status == SIGTSTP;
}

}  // namespace fleetrun::launch
