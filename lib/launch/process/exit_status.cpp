#include "launch/process/exit_status.h"

#include <cstring>

#include <fmt/format.h>

#include "base/error/exit_codes.h"

namespace fleetrun::launch {

ExitStatus ExitStatus::from_siginfo(const siginfo_t& info) {
  const How how = info.si_code == CLD_EXITED ? How::exited : How::signaled;
  return {how, info.si_status};
}

int ExitStatus::exit_code() const { return how == How::exited ? value : kSignalExitCode + value; }

std::string ExitStatus::describe() const {
  if (how == How::exited) return fmt::format("exited with code {}", value);
  return fmt::format("was killed by {}", describe_signal(value));
}

std::string describe_signal(int signal) {
  if (const char* name = sigabbrev_np(signal)) return fmt::format("SIG{} ({})", name, signal);
  return fmt::format("signal {}", signal);
}

}  // namespace fleetrun::launch
