// What the ranks of a node have done lately. Nodes exchange this, because ranks wait for each other: a run hangs only
// when it hangs on all nodes.
#pragma once
#include <optional>
#include <vector>

#include "launch/loop/clock.h"

namespace fleetrun::launch {

struct SignsOfLife {
  // Time since any rank wrote, worked, sent a beat or ended. None: there are no ranks.
  std::optional<Clock::duration> silent;
  std::vector<Clock::duration> unmatched;  // per log rule: time since a line matched
  bool excuses_steps = false;  // a rank waits for a disk or is held by a debugger, so no step is late
};

// The signs of two nodes, taken together.
SignsOfLife together(const SignsOfLife& one, const SignsOfLife& other);

}  // namespace fleetrun::launch
