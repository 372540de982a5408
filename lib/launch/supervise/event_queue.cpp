#include "launch/supervise/event_queue.h"

#include <chrono>
#include <utility>

namespace fleetrun::launch {
namespace {

constexpr auto kLateBeat = std::chrono::seconds(1);  // later than this, and somebody stopped us

}  // namespace

void EventQueue::notice_standstill() {
  const TimePoint now = Clock::now();
  const Clock::duration since = now - std::exchange(awake_at_, now);
  if (since > kBeat + kLateBeat) events_.push_front(StoodStill{since - kBeat});
}

void EventQueue::push_at(TimePoint time, const Event& event) {
  loop_.call_at(time, [this, event] { push(event); });
}

Event EventQueue::next() {
  while (events_.empty()) {
    if (loop_.poll_one()) continue;
    if (lateness_) lateness_->found_nothing();
    loop_.run_one();
    if (lateness_) lateness_->woke();
  }
  notice_standstill();
  Event first = std::move(events_.front());
  events_.pop_front();
  return first;
}

}  // namespace fleetrun::launch
