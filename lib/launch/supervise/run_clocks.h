// The times that a run waits for. While it is suspended (Ctrl-Z) they stand still: each moves by as long as that took.
#pragma once
#include <optional>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

struct RunClocks {
  TimePoint started;                        // the present attempt
  TimePoint deadline;                       // of every phase but running
  std::optional<TimePoint> timeout;         // of the run
  std::optional<TimePoint> early_exit;      // once a rank has finished
  std::optional<TimePoint> standing_since;  // none: the clocks run

  bool stand_still() const { return standing_since.has_value(); }
  TimePoint time(TimePoint now) const { return standing_since.value_or(now); }  // by these clocks
  Clock::duration go_on(TimePoint now);                                         // how long they stood
  void put_off(Clock::duration time);                                           // what is waited for
};

}  // namespace fleetrun::launch
