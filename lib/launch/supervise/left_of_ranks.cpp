#include "launch/supervise/left_of_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "base/system/unique_fd.h"
#include "launch/process/pidfd.h"
#include "launch/process/pipe_readers.h"
#include "launch/process/proc_files.h"
#include "launch/process/shells.h"
#include "launch/process/signals.h"

namespace fleetrun::launch {
namespace {

std::vector<LeftProcess> members_of(int rank, const LeftByRank& left) {
  const auto found = left.find(rank);
  return found == left.end() ? std::vector<LeftProcess>() : found->second;
}

// The signal for which the process has a handler; 0: none.
int handled_by(pid_t pid, int signal) {
  if (handles(pid, signal)) return signal;
  return handles(pid, SIGTERM) ? SIGTERM : 0;
}

bool is_alive(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && stat->state != 'Z' && stat->state != 'X';
}

bool is_in_our_session(pid_t pid) { return ::getsid(pid) == ::getsid(0); }

// A program takes back its handler as soon as the signal has come, so that nothing interrupts its last checkpoint. The signal has come from us, or
// from whoever has signalled all processes, or from a wrapper that passes it on and ends. Of a SIGTERM that is not ours, nobody has noted the
// handlers: who ignores it may have had one. Other signals are ignored by many from the start, such as SIGINT by jobs in the background.
bool seems_to_save(pid_t pid, const LeftOfRanks::Request& request) {
  if (request.handlers.contains(pid)) return true;
  return !request.by_fleetrun && request.signal == SIGTERM && ignores(pid, SIGTERM);
}

void send_to_member(pid_t pid, int signal) {
  const UniqueFd pidfd = open_pidfd(pid);
  if (pidfd && is_in_our_session(pid)) send_signal(pidfd, signal);
}

std::optional<int> rank_in_environment(pid_t pid) {
  const std::string number = read_variable(pid, "PADDLE_LOCAL_RANK");
  const char* const end = number.data() + number.size();
  int rank = 0;
  const auto [stop, problem] = std::from_chars(number.data(), end, rank);
  return problem == std::errc() && stop == end ? std::optional(rank) : std::nullopt;
}

}  // namespace

LeftByRank by_rank(const std::vector<LeftProcess>& left, const std::vector<pid_t>& leaders) {
  std::unordered_map<pid_t, int> of_leader, of_process;
  for (int rank = 0; rank < std::ssize(leaders); ++rank)
    if (const pid_t leader = leaders[static_cast<std::size_t>(rank)]; leader > 0) of_leader[leader] = rank;
  LeftByRank ranks;
  for (const LeftProcess& process : left) {
    if (!is_in_our_session(process.pid)) continue;
    const auto group = of_leader.find(::getpgid(process.pid));
    const auto parent = of_process.find(process.parent);
    const std::optional<int> rank = group != of_leader.end()     ? group->second
                                    : parent != of_process.end() ? parent->second
                                                                 : rank_in_environment(process.pid);
    if (!rank) continue;
    of_process[process.pid] = *rank;
    ranks[*rank].push_back(process);
  }
  return ranks;
}

bool LeftOfRanks::add(int rank, pid_t leader, const Request& request, const LeftByRank& left) {
  const std::vector<LeftProcess> members = members_of(rank, left);
  if (members.empty()) return false;
  const TimePoint now = Clock::now();
  groups_.push_back({.rank = rank,
                     .leader = leader,
                     .request = request,
                     .ask_at = request.by_fleetrun ? now : now + kTimeToFollow,
                     .asked = {},
                     .told = {},
                     .in_foreground = {},
                     .alone_since = {},
                     .told_at = {}});
  note_filters(groups_.back(), members);
  ask(groups_.back(), members, now);
  return true;
}

// Also those of a leader that somebody else has signalled.
void LeftOfRanks::note_filters(Group& group, const std::vector<LeftProcess>& members) {
  std::vector<pid_t> all;
  std::set<pid_t> handlers;
  for (const LeftProcess& member : members) {
    all.push_back(member.pid);
    if (handled_by(member.pid, group.request.signal) != 0) handlers.insert(member.pid);
  }
  group.request.filters.merge(filters_among(all, handlers));
}

std::vector<int> LeftOfRanks::take_ended(const LeftByRank& left, TimePoint now) {
  std::vector<int> ended;
  for (Group& group : std::exchange(groups_, {})) {
    const std::vector<LeftProcess> members = members_of(group.rank, left);
    if (!members.empty()) ask(group, members, now);
    const bool had_time = group.told_at && now - *group.told_at >= kTimeToEnd;
    // A list may lack a process that has just lost its parent.
    const bool is_over = members.empty() && std::ranges::none_of(group.asked, is_alive);
    if (!is_over && !had_time) {
      groups_.push_back(std::move(group));
      continue;
    }
    ended.push_back(group.rank);
    for (const LeftProcess& member : members) deaf_.push_back(member.pid);
  }
  return ended;
}

void LeftOfRanks::forget() {
  groups_.clear();
  deaf_.clear();
}

// First those that handle the signal. They may still need the others: who saves a checkpoint prints into a pipe to `tee`.
void LeftOfRanks::ask(Group& group, const std::vector<LeftProcess>& members, TimePoint now) {
  if (now < group.ask_at) return;
  if (ask_handlers(group, members)) {
    group.alone_since.reset();
    group.told_at.reset();
    return;
  }
  if (!group.alone_since) group.alone_since = now;
  if (!group.asked.empty() && now - *group.alone_since < kTimeToFollow) return;
  tell(group, members, now);
}

// A filter, such as gzip, gets the signal kTimeToEnd after the others: by then it has seen the end of its pipe, and has written what it had.
void LeftOfRanks::tell(Group& group, const std::vector<LeftProcess>& members, TimePoint now) {
  const bool filters_too = group.told_at && now - *group.told_at >= kTimeToEnd;
  std::set<pid_t> filters;
  for (const LeftProcess& member : members)
    if (reads_pipe(member.pid)) filters.insert(member.pid);
  bool any_new = false;
  for (const LeftProcess& member : members) {
    const bool is_filter = filters.contains(member.pid);
    if ((is_filter && !filters_too) || !group.told.insert(member.pid).second) continue;
    any_new = true;
    if (is_filter) group.told_at = now;
    if (!filters.empty() || ::getpgid(member.pid) != group.leader) send_to_member(member.pid, SIGTERM);
  }
  if (any_new && filters.empty()) ::killpg(group.leader, SIGTERM);
  if (!group.told_at) group.told_at = now;
}

// Whether one is left. Who was asked may save something until it is gone, whatever it makes of another signal meanwhile. Its children are
// its own affair: forked ones have its handler, and would save the same. But a shell with a trap waits for its program. SIGINT is different, see interrupt_below().
bool LeftOfRanks::ask_handlers(Group& group, const std::vector<LeftProcess>& members) {
  std::unordered_set<pid_t> covered;
  for (const LeftProcess& member : members) {
    if (group.request.filters.contains(member.pid)) continue;
    const bool is_covered = covered.contains(member.parent) && !group.in_foreground.contains(member.pid);
    if (!is_covered && !group.asked.contains(member.pid)) {
      const bool has_seen_it = group.request.group_has_it && ::getpgid(member.pid) == group.leader;
      const bool was_asked = group.request.asked.contains(member.pid) ||
                             (has_seen_it && group.request.handlers.contains(member.pid));
      const int signal = was_asked ? 0 : handled_by(member.pid, group.request.signal);
      if (signal == 0 && !seems_to_save(member.pid, group.request)) continue;
      group.asked.insert(member.pid);
      const bool has_it = has_seen_it && signal == group.request.signal;
      if (signal == SIGTERM)
        for (const pid_t child : foreground_of(member.pid)) group.in_foreground.insert(child);
      if (signal != 0 && !has_it) end_shells_above(member, group, members);
      if (signal != 0 && !has_it) send_to_member(member.pid, signal);
      if (signal == SIGINT && !has_it && group.request.by_fleetrun)
        interrupt_below(member.pid, group, members);
    }
    covered.insert(member.pid);
  }
  return !covered.empty();
}

// A shell without a handler would go on with its next command when its program has saved and ended. One that reads what the program prints
// has to stay.
void LeftOfRanks::end_shells_above(const LeftProcess& member, Group& group,
                                   const std::vector<LeftProcess>& members) {
  const auto parent_in = [&](pid_t pid) {
    return std::ranges::find(members, pid, [](const LeftProcess& each) { return each.pid; });
  };
  for (auto above = parent_in(member.parent); above != members.end(); above = parent_in(above->parent))
    if (is_shell(above->pid) && !reads_output_of(above->pid, member.pid) &&
        group.told.insert(above->pid).second)
      send_to_member(above->pid, SIGTERM);
}

// A shell that gets SIGINT waits for its program, which a terminal interrupts, too. So this interrupts those below `handler` that handle SIGINT.
// If there are none, it interrupts all below it: the shell waits for them. Beside a program with a handler they are left alone: who saves a
// checkpoint prints into a pipe to `tee`.
void LeftOfRanks::interrupt_below(pid_t handler, Group& group, const std::vector<LeftProcess>& members) {
  std::unordered_set<pid_t> below = {handler};
  std::vector<pid_t> others, handlers;
  for (const LeftProcess& member : members) {
    if (!below.contains(member.parent) || ::getpgid(member.pid) != group.leader) continue;
    below.insert(member.pid);
    (handles(member.pid, SIGINT) ? handlers : others).push_back(member.pid);
  }
  if (handlers.empty())
    for (const pid_t pid : others) send_to_member(pid, SIGINT);
  for (const pid_t pid : handlers) {
    if (!group.asked.insert(pid).second) continue;
    send_to_member(pid, SIGINT);
    interrupt_below(pid, group, members);
  }
}

}  // namespace fleetrun::launch
