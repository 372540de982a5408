#include "launch/process/signals.h"

#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/process/proc_files.h"
#include "launch/process/shells.h"

namespace fleetrun::launch {
namespace {

constexpr auto kOneSignal =
    std::chrono::seconds(1);          // in which the same signal is one, however busy the machine is
constexpr int kFromTerminal = 1;      // value of a signal that is passed on
constexpr int kStandardSignals = 31;  // of signal(7); the ones after them are for real-time programs

sigset_t as_set(const std::vector<int>& signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int number : signals) ::sigaddset(&set, number);
  return set;
}

// The terminal's signals come from the kernel.
bool is_from_terminal(const signalfd_siginfo& info) {
  return info.ssi_code == SI_KERNEL || (info.ssi_code == SI_QUEUE && info.ssi_int == kFromTerminal);
}

std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

// "SigBlk:\t0000000000010000" in a text of /proc/PID/status.
std::optional<std::uint64_t> mask_in(const std::string& proc_status, std::string_view name) {
  const std::string start = fmt::format("\n{}:\t", name);
  const auto place = proc_status.find(start);
  if (place == std::string::npos) return std::nullopt;
  return std::strtoull(proc_status.c_str() + place + start.size(), nullptr, 16);
}

// As the C library does for a moment in fork, posix_spawn and pthread_create.
bool blocks_everything(std::uint64_t mask) {
  const std::uint64_t standard = bit_of(kStandardSignals + 1) - 1 - bit_of(SIGKILL) - bit_of(SIGSTOP);
  return (mask & standard) == standard;
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

bool is_obeyed_by_a_run(int signal) {
  return signal == SIGTSTP || signal == SIGCONT || signal == SIGQUIT || signal == SIGUSR1 ||
         signal == SIGUSR2;
}

void reset_inherited_signals() {
  ::signal(SIGCHLD, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that would be longer than ulimit -f is an error to report
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
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

std::vector<ReceivedSignal> read_signals(int signal_fd) {
  std::vector<ReceivedSignal> signals;
  signalfd_siginfo info{};
  while (::read(signal_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    signals.push_back({static_cast<int>(info.ssi_signo), is_from_terminal(info),
                       info.ssi_signo == SIGCHLD && info.ssi_code == CLD_STOPPED});
  return signals;
}

void pass_signal(const UniqueFd& pidfd, const ReceivedSignal& signal) {
  siginfo_t info{};
  info.si_signo = signal.number;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_int = signal.from_terminal ? kFromTerminal : 0;
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal.number, &info, 0);
}

bool SignalRepeats::is_repeat(const ReceivedSignal& signal, TimePoint now) {
  if (!ends_a_run(signal.number)) return false;
  const bool is_like_it = signal.number == last_.number || (signal.number == SIGINT && !signal.from_terminal);
  const bool same = is_like_it && last_.number != 0 && now - last_at_ < kOneSignal;
  if (same && !(signal.from_terminal && last_.from_terminal)) {
    last_.from_terminal = last_.from_terminal || signal.from_terminal;
    return true;
  }
  last_ = signal;
  last_at_ = now;
  return false;
}

bool catches(pid_t pid, int signal) {
  const std::string status = read_kernel_file(process_path(pid, "status"));
  return (mask_in(status, "SigCgt").value_or(0) & bit_of(signal)) != 0;
}

bool ignores(pid_t pid, int signal) {
  const std::string status = read_kernel_file(process_path(pid, "status"));
  return (mask_in(status, "SigIgn").value_or(0) & bit_of(signal)) != 0;
}

bool is_pending(pid_t pid, int signal) {
  const std::string status = read_kernel_file(process_path(pid, "status"));
  return ((mask_in(status, "SigPnd").value_or(0) | mask_in(status, "ShdPnd").value_or(0)) & bit_of(signal)) !=
         0;
}

bool handles(pid_t pid, int signal) {
  if (!shows_own_processes()) return true;
  if (signal == SIGTERM && is_shell(pid)) return catches(pid, SIGTERM);
  const std::string status = read_kernel_file(process_path(pid, "status"));
  const auto ignored = mask_in(status, "SigIgn");
  return ignored && (*ignored & bit_of(signal)) == 0 && !would_end(pid, signal);
}

bool would_end(pid_t pid, int signal) {
  return !shows_own_processes() || would_end(read_thread_statuses(pid), signal);
}

bool would_end(const std::vector<std::string>& threads, int signal) {
  bool all_block = true;
  for (const std::string& status : threads) {
    const auto blocked = mask_in(status, "SigBlk"), ignored = mask_in(status, "SigIgn"),
               caught = mask_in(status, "SigCgt");
    if (!blocked || !ignored || !caught) continue;  // it is gone
    if (((*ignored | *caught) & bit_of(signal)) != 0) return false;
    if ((*blocked & bit_of(signal)) == 0 || blocks_everything(*blocked)) all_block = false;
  }
  return !all_block;
}

}  // namespace fleetrun::launch
