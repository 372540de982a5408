// What the ranks of a node have done lately. The nodes of a run exchange it, because ranks wait for each other: a run hangs only when it
// hangs on all nodes.
#pragma once
#include <optional>
#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

struct SignsOfLife {
  std::optional<Clock::duration> silent;   // since a rank wrote, worked or beat; none: no rank runs
  std::vector<Clock::duration> unmatched;  // of each log rule: since a line obeyed it
  bool excuses_steps = false;  // a rank waits for a disk, or a debugger holds one: nobody else's step is late
};

// Of the two nodes together.
SignsOfLife together(const SignsOfLife& one, const SignsOfLife& other);

}  // namespace fleetrun::launch
