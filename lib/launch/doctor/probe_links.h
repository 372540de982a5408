// Connects to the ProbeServers of other nodes, and measures the links.
#pragma once
#include "base/system/endpoint.h"
#include "launch/doctor/examination.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// Measures the latency and then, for `time`, the bandwidth. Takes less than `time` and 2.2 s more.
LinkFacts measure_link(const Endpoint& endpoint, Clock::duration time);

}  // namespace fleetrun::launch
