// The events of a run, in order. Whoever notices something puts it in, and only the run loop takes it out.
#pragma once
#include <deque>
#include <optional>
#include <utility>

#include "launch/loop/event_loop.h"
#include "launch/loop/lateness.h"
#include "launch/supervise/events.h"

namespace fleetrun::launch {

class EventQueue {
 public:
  static constexpr auto kBeat = std::chrono::seconds(1);

  explicit EventQueue(EventLoop& loop) : loop_(loop) {}  // outlives the queue

  void push(Event event) { events_.push_back(std::move(event)); }
  void push_at(TimePoint time, const Event& event);

  // Removes and returns the first event. While the queue is empty, runs the callbacks of the loop. If this process was
  // stopped for a while, StoodStill comes first, so that the Supervisor moves deadlines before it sees that they have
  // passed.
  Event next();

  // A signal is in the queue that asks the run to end.
  bool holds_request_to_end() const;

  // The time at which next() returned. Decisions about its event use this time: a stop after it is noticed before the next event.
  TimePoint noticed_at() const { return awake_at_; }

  // An event noticed now happened at most this long ago; 0 unless measure_lateness() was called.
  Clock::duration lateness() const { return lateness_ ? lateness_->now() : Clock::duration(); }
  void measure_lateness() { lateness_.emplace(); }

  // Call it every kBeat. A longer pause means that this process was stopped.
  void notice_standstill();

 private:
  EventLoop& loop_;
  std::deque<Event> events_;
  std::optional<Lateness> lateness_;
  TimePoint awake_at_ = Clock::now();  // the last time that we know that this process ran
};

}  // namespace fleetrun::launch
