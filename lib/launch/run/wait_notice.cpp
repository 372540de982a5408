#include "launch/run/wait_notice.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/name_ranks.h"

namespace fleetrun::launch {
namespace {

constexpr auto kFirstNotice = std::chrono::seconds(5);      // half of the usual --grace
constexpr auto kNextNotices = std::chrono::seconds(10);     // from one to the next
constexpr auto kFinishedNotice = std::chrono::seconds(30);  // ranks of one training end together
constexpr std::size_t kMostNamed = 8;                       // ranks

std::vector<int> ranks_that(const Verdict& verdict, Role role) {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < verdict.ranks.size(); ++i)
    if (verdict.ranks[i].role == role) ranks.push_back(static_cast<int>(i));
  return ranks;
}

std::string name_some(const std::vector<int>& ranks) {
  if (ranks.size() <= kMostNamed) return name_ranks(ranks);
  return fmt::format("{} and {} more", name_ranks({ranks.begin(), ranks.begin() + kMostNamed}),
                     ranks.size() - kMostNamed);
}

std::chrono::seconds whole_seconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time);
}

}  // namespace

std::string describe_wait(const std::vector<int>& ranks, Clock::duration waited, Clock::duration grace) {
  const std::string who = name_some(ranks);
  if (waited < grace)
    return fmt::format("waiting for {} to end, {} s so far; --grace allows {} s", who,
                       whole_seconds(waited).count(), whole_seconds(grace).count());
  return fmt::format("{} {} still there, {} s after SIGKILL", who, ranks.size() == 1 ? "is" : "are",
                     whole_seconds(waited - grace).count());
}

WaitNotice::WaitNotice(EventLoop& loop, Clock::duration grace, std::function<const Verdict&()> verdict,
                       Say say)
    : loop_(loop), grace_(grace), verdict_(std::move(verdict)), say_(std::move(say)) {}

void WaitNotice::begin_attempt() {
  ++attempt_;
  ending_ = finishing_ = false;
}

void WaitNotice::look() {
  const unsigned attempt = attempt_;
  if (verdict_().cause != Cause::finished && !std::exchange(ending_, true)) {
    const TimePoint began = Clock::now();
    loop_.call_at(began + kFirstNotice, [this, attempt, began] { say_end(attempt, began); });
  }
  if (!ranks_that(verdict_(), Role::finished).empty() && !std::exchange(finishing_, true))
    loop_.call_at(Clock::now() + kFinishedNotice, [this, attempt] { say_finished(attempt); });
}

void WaitNotice::say_end(unsigned attempt, TimePoint began) {
  const std::vector<int> ranks = ranks_that(verdict_(), Role::running);
  if (attempt != attempt_ || ranks.empty()) return;
  const TimePoint now = Clock::now();
  say_(describe_wait(ranks, now - began, grace_));
  loop_.call_at(now + kNextNotices, [this, attempt, began] { say_end(attempt, began); });
}

// Once: a rank may have more to do than others.
void WaitNotice::say_finished(unsigned attempt) {
  const std::vector<int> ranks = ranks_that(verdict_(), Role::running);
  if (attempt != attempt_ || ranks.empty() || ending_) return;
  const std::vector<int> finished = ranks_that(verdict_(), Role::finished);
  say_(fmt::format("{} finished, waiting for {}", name_some(finished), name_some(ranks)));
}

}  // namespace fleetrun::launch
