// The clock for everything that waits. It is monotonic: setting the time of day does not move a deadline.
#pragma once
#include <chrono>

namespace fleetrun::launch {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

inline double in_seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// One moment on both clocks: the time of day for the user, the steady clock for durations.
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
