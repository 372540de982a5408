// The events of a run, in order. Whoever notices something puts it in, and only the run loop takes it out.
#pragma once
#include <deque>
#include <utility>

#include "launch/loop/event_loop.h"
#include "launch/supervise/events.h"

namespace fleetrun::launch {

class EventQueue {
 public:
  explicit EventQueue(EventLoop& loop) : loop_(loop) {}  // outlives the queue

  void push(Event event) { events_.push_back(std::move(event)); }
  void push_at(TimePoint time, const Event& event);

  // The first event. While there is none, runs the callbacks of the loop.
  Event next();

 private:
  EventLoop& loop_;
  std::deque<Event> events_;
};

}  // namespace fleetrun::launch
