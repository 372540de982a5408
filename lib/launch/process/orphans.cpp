#include "launch/process/orphans.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/unique_fd.h"
#include "launch/process/pidfd.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr int kLookAgain_ms = 20;  // for children that arrive while we wait for another one

constexpr int kAskedPause_ms = 5;  // most programs end at once when they are asked

constexpr auto kMostSearch =
    std::chrono::minutes(1);  // in which those who hide /proc have no more children to show

constexpr auto kLastWait = std::chrono::seconds(1);

constexpr pid_t kMostPid = 4'194'304;  // the largest number that Linux gives, where it is not told

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool is_child(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void add_running(pid_t root, std::vector<LeftProcess>& processes) {
  for (const pid_t pid : list_process_tree(root)) {
    const auto stat = read_process_stat(pid);
    if (stat && stat->state != 'Z' && stat->state != 'X') processes.push_back({pid, stat->parent});
  }
}

std::vector<LeftProcess> list_left_but(const std::vector<pid_t>& deaf, const std::vector<pid_t>& known) {
  std::vector<LeftProcess> left = list_left(known);
  std::erase_if(left, [&](const LeftProcess& one) { return std::ranges::find(deaf, one.pid) != deaf.end(); });
  return left;
}

// Seconds for all numbers: for those who hide /proc from us.
std::vector<pid_t> try_all_numbers() {
  std::vector<pid_t> children;
  const pid_t most = std::atoi(read_kernel_file("/proc/sys/kernel/pid_max").c_str());
  for (pid_t pid = 1; pid < (most > 0 ? most : kMostPid); ++pid)
    if (is_child(pid)) children.push_back(pid);
  return children;
}

void reap_all() {
  siginfo_t info{};
  do info = {};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0);
}

// Kills all; waits a moment for the first.
void kill_children(const std::vector<pid_t>& children) {
  UniqueFd first;
  for (const pid_t pid : children) {
    UniqueFd pidfd = open_pidfd(pid);
    if (pidfd) send_signal(pidfd, SIGKILL);
    if (!first) first = std::move(pidfd);
  }
  pollfd one{.fd = first.get(), .events = POLLIN, .revents = 0};
  ::poll(&one, 1, kLookAgain_ms);
}

// The last search may have found some that were killed only now. Returns those that do not end.
std::vector<pid_t> wait_for_end(std::vector<pid_t> killed) {
  const TimePoint deadline = Clock::now() + kLastWait;
  while (true) {
    reap_all();
    std::erase_if(killed, [](pid_t pid) { return !is_child(pid); });
    if (killed.empty() || Clock::now() >= deadline) return killed;
    ::poll(nullptr, 0, kLookAgain_ms);
  }
}

}  // namespace

void become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw Error(ErrorKind::os, fmt::format("becoming the reaper of orphans: {}", describe_errno(errno)));
}

std::vector<pid_t> find_children() {
  if (!has_children()) return {};
  return shows_own_processes() ? list_children() : try_all_numbers();
}

void reap_orphans(const std::vector<pid_t>& known) {
  for (const pid_t pid : list_children())
    if (std::find(known.begin(), known.end(), pid) == known.end()) ::waitpid(pid, nullptr, WNOHANG);
}

// A process may end between two looks, and leave its children to us: so an empty result counts only when we look again.
std::vector<LeftProcess> list_left(const std::vector<pid_t>& known) {
  const std::unordered_set<pid_t> ours(known.begin(), known.end());
  std::vector<LeftProcess> left;
  bool any = true;
  for (int look = 0; look < 2 && any && left.empty(); ++look) {
    any = false;
    for (const pid_t child : list_children()) {
      if (ours.contains(child)) continue;
      any = true;
      add_running(child, left);
    }
  }
  return left;
}

void wait_for_left(TimePoint latest, const std::vector<pid_t>& known, const std::vector<pid_t>& deaf) {
  while (Clock::now() < latest && !list_left_but(deaf, known).empty()) ::poll(nullptr, 0, kAskedPause_ms);
}

std::vector<pid_t> ask_left_to_end(Clock::duration patience, const std::vector<pid_t>& known,
                                   const std::vector<pid_t>& deaf) {
  const TimePoint deadline = Clock::now() + patience;
  std::vector<pid_t> asked;
  for (const LeftProcess& process : list_left_but(deaf, known)) {
    const UniqueFd pidfd = open_pidfd(process.pid);
    if (!pidfd) continue;
    send_signal(pidfd, SIGTERM);
    send_signal(pidfd, SIGCONT);
    asked.push_back(process.pid);
  }
  wait_for_left(deadline, known, deaf);
  return asked;
}

std::vector<pid_t> end_all_children(Clock::duration patience, const std::vector<pid_t>& spared) {
  const TimePoint start = Clock::now();
  Clock::duration searches{};
  while (true) {
    reap_all();
    const TimePoint search = Clock::now();
    std::vector<pid_t> children = find_children();
    searches += Clock::now() - search;
    std::erase_if(children,
                  [&](pid_t pid) { return std::find(spared.begin(), spared.end(), pid) != spared.end(); });
    if (children.empty()) return children;
    kill_children(children);
    const Clock::duration passed = Clock::now() - start;
    if (passed - searches >= patience || passed >= kMostSearch) return wait_for_end(std::move(children));
  }
}

}  // namespace fleetrun::launch
