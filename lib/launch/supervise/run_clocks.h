// The times that a run waits for. Its clocks stand still while it is suspended (Ctrl-Z): afterwards every time moves by
// the length of the suspension.
#pragma once
#include <optional>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

struct RunClocks {
  TimePoint started;                        // start of the present attempt
  TimePoint deadline;                       // of every phase but running
  std::optional<TimePoint> timeout;         // of the run
  std::optional<TimePoint> early_exit;      // set once a rank has finished
  std::optional<TimePoint> doubt;           // until then, a signal to us explains why the first rank died
  std::optional<TimePoint> standing_since;  // none: the clocks run

  bool stand_still() const { return standing_since.has_value(); }
  TimePoint time(TimePoint now) const { return standing_since.value_or(now); }  // now, on these clocks
  Clock::duration go_on(TimePoint now);                                         // returns how long they stood
  void put_off(Clock::duration time);  // moves deadlines, but not `started`
};

}  // namespace fleetrun::launch
