#include "launch/supervise/event_queue.h"

#include <utility>

namespace fleetrun::launch {

void EventQueue::push_at(TimePoint time, const Event& event) {
  loop_.call_at(time, [this, event] { push(event); });
}

Event EventQueue::next() {
  while (events_.empty()) loop_.run_one();
  Event first = std::move(events_.front());
  events_.pop_front();
  return first;
}

}  // namespace fleetrun::launch
