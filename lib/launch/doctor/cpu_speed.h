// How fast one thread of this node computes.
#pragma once
#include "launch/doctor/examination.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// Multiplies small matrices for this long.
CpuSpeed measure_cpu(Clock::duration time);

}  // namespace fleetrun::launch
