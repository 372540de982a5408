// How late this process may notice an event: the processor time that it used, and the time that it waited for a
// processor, since the look for events before the last one.
#pragma once
#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

class Lateness {
 public:
  Lateness();

  void look();  // to be called before each wait for events
  // An event noticed now happened at most this long ago. Without /proc/self/schedstat, waits for a processor are not
  // included.
  Clock::duration now() const;

 private:
  Clock::duration spent() const;  // used or waited by this process so far, except waits for events

  UniqueFd waits_;
  Clock::duration last_look_{}, look_before_{};
};

}  // namespace fleetrun::launch
