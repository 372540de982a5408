// A clock that tests move, and what is to happen at its times.
#pragma once
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

class VirtualTime {
 public:
  TimePoint now() const { return now_; }
  void at(TimePoint time, std::function<void()> act) { events_.push({time, ++count_, std::move(act)}); }
  void after(Clock::duration delay, std::function<void()> act) { at(now_ + delay, std::move(act)); }

  // Until nothing is left. Of two events of one time, the one that was added first happens first.
  void run() {
    while (!events_.empty()) {
      const Pending event = events_.top();
      events_.pop();
      now_ = event.time;
      event.act();
    }
  }

 private:
  struct Pending {
    TimePoint time;
    std::uint64_t number = 0;
    std::function<void()> act;
    bool operator<(const Pending& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  TimePoint now_ = TimePoint() + std::chrono::hours(1);
  std::priority_queue<Pending> events_;
  std::uint64_t count_ = 0;
};

}  // namespace fleetrun::launch
