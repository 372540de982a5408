// How long fleetrun waits when ranks end, unless the user says otherwise.
#pragma once
#include "launch/loop/clock.h"

namespace fleetrun::launch {

constexpr Clock::duration kUsualGrace = std::chrono::seconds(10);        // --grace
constexpr Clock::duration kUsualKillWait = std::chrono::seconds(30);     // --kill_wait
constexpr Clock::duration kUsualRestartDelay = std::chrono::seconds(1);  // --restart_delay

}  // namespace fleetrun::launch
