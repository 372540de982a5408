// The clock of everything that waits. Monotonic, so that setting the time of day moves no deadline.
#pragma once
#include <chrono>

namespace fleetrun::launch {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

inline double in_seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// By both clocks: the time of day for people, the steady one for how long something took.
struct Moment {
  std::chrono::system_clock::time_point wall;
  TimePoint steady;

  static Moment now() { return {std::chrono::system_clock::now(), Clock::now()}; }
};

inline double seconds_between(const Moment& start, const Moment& end) {
  return in_seconds(end.steady - start.steady);
}
inline double seconds_since(const Moment& start) { return seconds_between(start, Moment::now()); }

}  // namespace fleetrun::launch
