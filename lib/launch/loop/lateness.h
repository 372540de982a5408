// How late this process may notice what happens: since it last looked for events, its processor time and its waits for a processor.
#pragma once
#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

class Lateness {
 public:
  Lateness();

  void look();  // to be called before each wait for events
  // What is noticed now happened at most so much earlier. Without /proc/self/schedstat the waits for a processor are not in it.
  Clock::duration now() const;

 private:
  Clock::duration spent() const;  // by this process so far, without what it waits for events

  UniqueFd waits_;
  Clock::duration last_look_{}, look_before_{};
};

}  // namespace fleetrun::launch
