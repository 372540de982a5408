// How late this process may notice an event: the time since it found that nothing had happened, without its wait for
// events.
#pragma once
#include <optional>

#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

class Lateness {
 public:
  Lateness();

  void found_nothing();  // to be called before each wait for events
  void woke();           // after the first event that came then
  // An event noticed now happened at most this long ago. Without /proc/self/schedstat, waits for a processor are not
  // included.
  Clock::duration now() const;

 private:
  Clock::duration spent() const;  // used or waited by this process so far, except waits for events

  UniqueFd waits_;
  Clock::duration before_wait_{}, waking_{};
  std::optional<TimePoint> awake_;
};

}  // namespace fleetrun::launch
