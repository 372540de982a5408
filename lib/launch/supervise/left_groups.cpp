#include "launch/supervise/left_groups.h"

#include <unistd.h>

#include <csignal>
#include <unordered_set>
#include <utility>

#include "base/system/unique_fd.h"
#include "launch/process/pidfd.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

std::vector<LeftProcess> members_of(pid_t leader, const LeftByGroup& left) {
  const auto found = left.find(leader);
  return found == left.end() ? std::vector<LeftProcess>() : found->second;
}

// The signal for which the process has a handler; 0: none.
int handled_by(pid_t pid, int signal) {
  if (handles(pid, signal)) return signal;
  return handles(pid, SIGTERM) ? SIGTERM : 0;
}

void send_to_member(pid_t pid, pid_t leader, int signal) {
  const UniqueFd pidfd = open_pidfd(pid);
  if (pidfd && ::getpgid(pid) == leader) send_signal(pidfd, signal);
}

}  // namespace

LeftByGroup by_group(const std::vector<LeftProcess>& left) {
  LeftByGroup groups;
  for (const LeftProcess& process : left) groups[::getpgid(process.pid)].push_back(process);
  return groups;
}

bool LeftGroups::add(int rank, pid_t leader, int signal, bool group_has_it, const LeftByGroup& left) {
  const std::vector<LeftProcess> members = members_of(leader, left);
  if (members.empty()) return false;
  groups_.push_back({.rank = rank,
                     .leader = leader,
                     .signal = signal,
                     .has_it = group_has_it,
                     .asked = {},
                     .told = {},
                     .alone_since = {},
                     .told_at = {}});
  ask(groups_.back(), members, Clock::now());
  return true;
}

std::vector<int> LeftGroups::take_ended(const LeftByGroup& left, TimePoint now) {
  std::vector<int> ended;
  for (Group& group : std::exchange(groups_, {})) {
    const std::vector<LeftProcess> members = members_of(group.leader, left);
    if (!members.empty()) ask(group, members, now);
    if (members.empty() || (group.told_at && now - *group.told_at >= kTimeToEnd))
      ended.push_back(group.rank);
    else
      groups_.push_back(std::move(group));
  }
  return ended;
}

// First those that handle the signal. They may still need the others: who saves a checkpoint prints into a pipe to `tee`.
void LeftGroups::ask(Group& group, const std::vector<LeftProcess>& members, TimePoint now) {
  if (ask_handlers(group, members)) {
    group.alone_since.reset();
    group.told_at.reset();
    return;
  }
  if (!group.alone_since) group.alone_since = now;
  if (!group.asked.empty() && now - *group.alone_since < kTimeToFollow) return;
  bool any_new = false;
  for (const LeftProcess& member : members)
    if (group.told.insert(member.pid).second) any_new = true;
  if (any_new) ::killpg(group.leader, SIGTERM);
  if (!group.told_at) group.told_at = now;
}

// Whether one is left. Who was asked may save something until it is gone, whatever it makes of another signal meanwhile. Its children are
// its own affair: forked ones have its handler, and would save the same.
bool LeftGroups::ask_handlers(Group& group, const std::vector<LeftProcess>& members) {
  std::unordered_set<pid_t> covered;
  for (const LeftProcess& member : members) {
    if (!covered.contains(member.parent) && group.asked.count(member.pid) == 0) {
      const int signal = handled_by(member.pid, group.signal);
      if (signal == 0) continue;
      group.asked.insert(member.pid);
      if (!group.has_it || signal != group.signal) send_to_member(member.pid, group.leader, signal);
    }
    covered.insert(member.pid);
  }
  return !covered.empty();
}

}  // namespace fleetrun::launch
