#include "launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "launch/proc_files.h"

namespace fleetrun::launch {
namespace {

sigset_t as_set(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : signals) ::sigaddset(&set, number);
  return set;
}

}  // namespace

std::vector<int> handled_signals() {
  struct sigaction hup {};
  const bool ignored = ::sigaction(SIGHUP, nullptr, &hup) == 0 && hup.sa_handler == SIG_IGN;
  std::vector<int> signals = {SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD};
  if (!ignored) signals.push_back(SIGHUP);
  return signals;
}

bool ends_a_run(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

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

bool would_end(pid_t pid, int signal) {
  return would_end(read_kernel_file(process_path(pid, "status")), signal);
}

bool would_end(std::string_view proc_status, int signal) {
  std::uint64_t survived = 0;
  for (const std::string_view name : {"\nSigBlk:\t", "\nSigIgn:\t", "\nSigCgt:\t"}) {
    const auto place = proc_status.find(name);
    if (place == std::string_view::npos) return false;
    survived |= std::strtoull(std::string(proc_status.substr(place + name.size(), 16)).c_str(), nullptr, 16);
  }
  return (survived >> (signal - 1) & 1) == 0;
}

}  // namespace fleetrun::launch
