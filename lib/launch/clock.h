// The clock of everything that waits. Monotonic, so that setting the time of day moves no deadline.
#pragma once
#include <chrono>

namespace fleetrun::launch {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

}  // namespace fleetrun::launch
