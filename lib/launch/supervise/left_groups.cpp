#include "launch/supervise/left_groups.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/system/unique_fd.h"
#include "launch/process/orphans.h"
#include "launch/process/pidfd.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

std::vector<pid_t> members_of(pid_t leader, const std::vector<pid_t>& left) {
  std::vector<pid_t> members;
  std::copy_if(left.begin(), left.end(), std::back_inserter(members),
               [leader](pid_t pid) { return ::getpgid(pid) == leader; });
  return members;
}

// The signal to which the process has an answer of its own; 0: none has more effect on it than SIGKILL.
int handled_by(pid_t pid, int signal) {
  if (handles(pid, signal)) return signal;
  return handles(pid, SIGTERM) ? SIGTERM : 0;
}

}  // namespace

bool LeftGroups::add(int rank, pid_t leader, int signal, bool group_has_it, const std::vector<pid_t>& known) {
  const std::vector<pid_t> members = members_of(leader, list_left(known));
  if (members.empty()) return false;
  groups_.push_back({rank, leader, signal, group_has_it, {}});
  ask(groups_.back(), members);
  return true;
}

std::vector<int> LeftGroups::take_ended(const std::vector<pid_t>& known) {
  const std::vector<pid_t> left = list_left(known);
  std::vector<int> ended;
  for (Group& group : std::exchange(groups_, {})) {
    const std::vector<pid_t> members = members_of(group.leader, left);
    if (members.empty()) {
      ended.push_back(group.rank);
      continue;
    }
    ask(group, members);
    groups_.push_back(std::move(group));
  }
  return ended;
}

// First those that handle the signal. They may still need the others: who saves a checkpoint prints into a pipe to `tee`.
void LeftGroups::ask(Group& group, const std::vector<pid_t>& members) {
  bool any_handles = false;
  for (const pid_t pid : members) {
    const int signal = handled_by(pid, group.signal);
    if (signal == 0) continue;
    any_handles = true;
    if (!group.asked.insert(pid).second || (group.has_it && signal == group.signal)) continue;
    if (const UniqueFd pidfd = open_pidfd(pid)) send_signal(pidfd, signal);
  }
  if (!any_handles) ::killpg(group.leader, SIGTERM);
}

}  // namespace fleetrun::launch
