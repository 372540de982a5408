#include "launch/orphans.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "launch/pidfd.h"

namespace fleetrun::launch {
namespace {

constexpr int kLookAgain_ms = 20;  // for children that arrive while we wait for another one

// The parent's pid in /proc/PID/stat stands after the name, which may hold anything, and the state.
bool is_child(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text, '\0');
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || text.size() < name_end + 4) return false;
  return std::atoi(text.c_str() + name_end + 4) == ::getpid();
}

// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> search_children() {
  std::vector<pid_t> children;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", problem)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && is_child(entry.path())) children.push_back(pid);
  }
  return children;
}

bool reap_one() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0;
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

}  // namespace

void become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw Error(ErrorKind::os, fmt::format("becoming the reaper of orphans: {}", describe_errno(errno)));
}

std::vector<pid_t> list_children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", ::gettid()));
  if (!file) return search_children();
  std::vector<pid_t> children;
  for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  return children;
}

void reap_orphans(const std::vector<pid_t>& known) {
  for (const pid_t pid : list_children())
    if (std::find(known.begin(), known.end(), pid) == known.end()) ::waitpid(pid, nullptr, WNOHANG);
}

std::vector<pid_t> end_all_children(Clock::duration patience, pid_t but) {
  const TimePoint deadline = Clock::now() + patience;
  while (true) {
    while (reap_one()) {
    }
    std::vector<pid_t> children = list_children();
    std::erase(children, but);
    if (children.empty() || Clock::now() >= deadline) return children;
    kill_children(children);
  }
}

}  // namespace fleetrun::launch
