// The terminal of fleetrun, lent to the process group of one rank (--interactive). Meanwhile its keys, Ctrl-C and Ctrl-Z too, reach
// that rank only. For the middle process, whose parent is in the process group that the shell knows.
#pragma once
#include <sys/types.h>
#include <termios.h>

#include <optional>

namespace fleetrun::launch {

class TerminalLoan {
 public:
  TerminalLoan() = default;
  ~TerminalLoan() { take_back(); }
  TerminalLoan(const TerminalLoan&) = delete;
  TerminalLoan& operator=(const TerminalLoan&) = delete;

  // Our stdin is a terminal, and the shell has not put us into its background.
  static bool is_possible();
  void lend(pid_t group);  // does nothing unless it is possible
  bool is_lent() const;    // the group has it now
  // With the settings that the terminal had: a debugger that was killed leaves its own. Does nothing when the shell or another
  // process has taken the terminal meanwhile.
  void take_back();

 private:
  pid_t group_ = -1;  // that has it; -1: none
  std::optional<termios> settings_;
};

// The signal at which the leader has stopped since the last call: SIGTSTP (Ctrl-Z), SIGTTIN and SIGTTOU (it used the terminal from the
// background), SIGSTOP. 0: it has not stopped.
int take_stop(int leader_pidfd);

}  // namespace fleetrun::launch
