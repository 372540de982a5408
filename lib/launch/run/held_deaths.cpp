#include "launch/run/held_deaths.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "launch/evidence/lost_peer.h"
#include "launch/logs/last_lines.h"
#include "launch/run/last_words.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kSearchedWords = 64 * 1024;  // bytes
constexpr int kUncaughtCode = 1;                   // the exit code

bool has_ended(const Verdict& verdict) {
  return verdict.cause != Cause::finished || verdict.asked_to_end.has_value();
}

}  // namespace

HeldDeaths::HeldDeaths(EventQueue& events, const Attempt& attempt, const LogFolder& logs)
    : events_(events), attempt_(attempt), logs_(logs) {}

std::vector<Event> HeldDeaths::take(const Event& event, const Verdict& verdict) {
  if (!has_ended(verdict) && is_of_lost_peer(event)) {
    if (held_.empty()) events_.push_at(latest_ = Clock::now() + kTimeForPeer, Woke{});
    held_.push_back(event);
    const auto running =
        std::ranges::count_if(verdict.ranks, [](const RankVerdict& rank) { return !rank.status; });
    return running > std::ssize(held_) ? std::vector<Event>() : std::exchange(held_, {});
  }
  const bool is_early = std::holds_alternative<Woke>(event) && Clock::now() < latest_;
  if (held_.empty() || is_early) return {event};
  std::vector<Event> ready = std::exchange(held_, {});
  ready.push_back(event);
  return ready;
}

bool HeldDeaths::is_of_lost_peer(const Event& event) const {
  const auto* const death = std::get_if<WorkerExited>(&event);
  if (death == nullptr || death->status.exit_code() != kUncaughtCode) return false;
  const EndOfLog end = end_of_log(attempt_, logs_, death->rank);
  return find_lost_peer(read_log_end(end.log, kSearchedWords, end.size)).has_value();
}

}  // namespace fleetrun::launch
