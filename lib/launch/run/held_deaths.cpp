#include "launch/run/held_deaths.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <variant>

#include "launch/evidence/echoes.h"
#include "launch/evidence/log_cause.h"
#include "launch/evidence/lost_peer.h"
#include "launch/logs/last_lines.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kSearchedWords = 64 * 1024;  // bytes

bool has_ended(const Verdict& verdict) {
  return verdict.cause != Cause::finished || verdict.asked_to_end.has_value();
}

// Of this node.
std::ptrdiff_t running_ranks(const Verdict& verdict) {
  return std::ranges::count_if(verdict.ranks, [](const RankVerdict& rank) { return !rank.status; });
}

bool is_alone(const Verdict& verdict) { return verdict.span.world == std::ssize(verdict.ranks); }

bool finishes(const Event& event) {
  const auto* const death = std::get_if<WorkerExited>(&event);
  return death != nullptr && death->status.ok();
}

// Changes nothing about the ranks.
bool goes_on(const Event& event) {
  if (const auto* const signal = std::get_if<SignalReceived>(&event))
    return signal->signal == SIGUSR1 || signal->signal == SIGUSR2 || signal->signal == SIGQUIT;
  return std::holds_alternative<FinishedElsewhere>(event) || std::holds_alternative<NodesAnswered>(event) ||
         std::holds_alternative<StoodStill>(event);
}

}  // namespace

HeldDeaths::HeldDeaths(EventQueue& events, const Attempt& attempt, const LogFolder& logs)
    : events_(events), attempt_(attempt), logs_(logs) {}

std::vector<Event> HeldDeaths::take(const Event& event, const Verdict& verdict) {
  if (!has_ended(verdict) && is_of_lost_peer(event)) {
    if (held_.empty()) events_.push_at(Clock::now() + kTimeForPeer, Woke{});
    held_.push_back(std::get<WorkerExited>(event));
    const bool may_have_peer = !is_alone(verdict) || running_ranks(verdict) > std::ssize(held_);
    return may_have_peer ? std::vector<Event>() : release();
  }
  if (held_.empty() || goes_on(event)) return {event};
  const bool is_last = is_alone(verdict) && running_ranks(verdict) == std::ssize(held_) + 1;
  if (finishes(event) && !is_last) return {event};
  const bool comes_first = finishes(event) || std::holds_alternative<EndedElsewhere>(event);
  std::vector<Event> ready = release();
  ready.insert(comes_first ? ready.begin() : ready.end(), event);
  if (auto* const death = std::get_if<WorkerExited>(&ready.back())) death->by_itself = true;
  return ready;
}

// The Supervisor ignores the mark of the first death, because that death is the cause.
std::vector<Event> HeldDeaths::release() {
  std::vector<Event> ready;
  for (WorkerExited& death : held_) {
    death.by_itself = true;
    ready.emplace_back(std::move(death));
  }
  held_.clear();
  return ready;
}

bool HeldDeaths::is_of_lost_peer(const Event& event) const {
  const auto* const death = std::get_if<WorkerExited>(&event);
  if (death == nullptr || death->status.ok()) return false;
  if (!may_end_by_lost_peer(death->status)) return false;
  const EndOfLogs ends = end_of_logs(attempt_, logs_, death->rank);
  const std::string script = script_of(attempt_.workers.at(static_cast<std::size_t>(death->rank)).argv);
  const auto tells_of_lost_peer = [&](const std::string& words, const std::string& cause) {
    if (names_own_error(words, script, cause)) return false;
    return find_lost_peer(words, script) || ends_with_lost_peer(words, death->status) ||
           may_tell_of_lost_peer(cause);
  };
  const std::string words = read_log_end(ends.first.log, kSearchedWords, ends.first.size);
  const std::string cause = find_log_cause(words, death->status, script).what;
  if (tells_of_lost_peer(words, cause)) return true;
  if (!cause.empty() || !ends.output) return false;
  const std::string output = read_log_end(ends.output->log, kSearchedWords, ends.output->size);
  return tells_of_lost_peer(output, find_log_cause(output, death->status, script).what);
}

}  // namespace fleetrun::launch
