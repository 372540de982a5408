#include "launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error.h"

namespace fleetrun::launch {
namespace {

sigset_t as_set(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : signals) ::sigaddset(&set, number);
  return set;
}

}  // namespace

std::vector<int> stop_signals() {
  struct sigaction hup {};
  const bool ignored = ::sigaction(SIGHUP, nullptr, &hup) == 0 && hup.sa_handler == SIG_IGN;
  std::vector<int> signals = {SIGINT, SIGTERM, SIGQUIT};
  if (!ignored) signals.push_back(SIGHUP);
  return signals;
}

void block_signals(const std::vector<int>& signals) {
  const sigset_t set = as_set(signals);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

UniqueFd open_signal_fd(const std::vector<int>& signals) {
  const sigset_t set = as_set(signals);
  UniqueFd fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) throw Error(ErrorKind::os, fmt::format("opening a signal descriptor: {}", describe_errno(errno)));
  return fd;
}

std::vector<int> read_signals(int signal_fd) {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (::read(signal_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    signals.push_back(static_cast<int>(info.ssi_signo));
  return signals;
}

}  // namespace fleetrun::launch
