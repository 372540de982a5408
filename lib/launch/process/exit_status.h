// How one process ended. A small value: copy it, compare it, print it.
#pragma once
#include <csignal>
#include <string>

namespace fleetrun::launch {

struct ExitStatus {
  enum class How { exited, signaled };
  How how = How::exited;
  int value = 0;  // exit code when exited, signal number when signaled

  static ExitStatus from_siginfo(const siginfo_t& info);  // as filled in by waitid(2)
  bool ok() const { return how == How::exited && value == 0; }
  int exit_code() const;         // as a shell counts: the code, or 128 + signal
  std::string describe() const;  // "exited with code 3", "was killed by SIGKILL (9)"
  bool operator==(const ExitStatus&) const = default;
};

std::string describe_signal(int signal);  // "SIGKILL (9)"

}  // namespace fleetrun::launch
