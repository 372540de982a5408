#include "launch/run/wait_notice.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/text/name_ranks.h"

namespace fleetrun::launch {
namespace {

constexpr auto kFirstNotice = std::chrono::seconds(5);      // half of the usual --grace
constexpr auto kNextNotices = std::chrono::seconds(10);     // from one to the next
constexpr auto kFinishedNotice = std::chrono::seconds(30);  // ranks of one training end together
constexpr std::size_t kMostNamed = 8;                       // ranks

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
  return fmt::format("waiting for {} to end, {} s so far; --grace allows {} s", name_some(ranks),
                     whole_seconds(waited).count(), whole_seconds(grace).count());
}

std::string describe_survivors(const std::vector<int>& ranks, Clock::duration since_kill) {
  return fmt::format("{} {} still there, {} s after SIGKILL", name_some(ranks),
                     ranks.size() == 1 ? "is" : "are", whole_seconds(since_kill).count());
}

WaitNotice::WaitNotice(EventLoop& loop, Clock::duration grace, const Verdict& verdict, Say say)
    : loop_(loop), grace_(grace), verdict_(verdict), say_(std::move(say)) {}

void WaitNotice::begin_attempt() {
  ++attempt_;
  ending_ = finishing_ = false;
}

void WaitNotice::look() {
  const unsigned attempt = attempt_;
  const auto& began = verdict_.killed ? verdict_.killed : verdict_.asked_to_end;
  if (began && !std::exchange(ending_, true))
    loop_.call_at(*began + kFirstNotice, [this, attempt] { say_end(attempt); });
  if (!ranks_that(verdict_, Role::finished).empty() && !std::exchange(finishing_, true))
    loop_.call_at(Clock::now() + kFinishedNotice, [this, attempt] { say_finished(attempt); });
}

void WaitNotice::say_end(unsigned attempt) {
  const std::vector<int> ranks =
      verdict_.killed ? ranks_that(verdict_, Role::running) : ranks_still_there(verdict_);
  if (attempt != attempt_ || ranks.empty()) return;
  const TimePoint now = Clock::now();
  say_(verdict_.killed ? describe_survivors(ranks, now - *verdict_.killed)
                       : describe_wait(ranks, now - *verdict_.asked_to_end, grace_));
  loop_.call_at(now + kNextNotices, [this, attempt] { say_end(attempt); });
}

// Once: a rank may have more to do than others.
void WaitNotice::say_finished(unsigned attempt) {
  const std::vector<int> ranks = ranks_that(verdict_, Role::running);
  if (attempt != attempt_ || ranks.empty() || verdict_.cause != Cause::finished) return;
  const std::vector<int> finished = ranks_that(verdict_, Role::finished);
  say_(fmt::format("{} finished, waiting for {}", name_some(finished), name_some(ranks)));
}

}  // namespace fleetrun::launch
