#include "launch/supervise/event_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "launch/process/signals.h"

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

bool EventQueue::holds_request_to_end() const {
  return std::ranges::any_of(events_, [](const Event& event) {
    const auto* const received = std::get_if<SignalReceived>(&event);
    return received != nullptr && ends_a_run(received->signal);
  });
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
