// Connects to the ProbeServers of other nodes, and measures the links.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/endpoint.h"
#include "launch/doctor/examination.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// For each endpoint, why it cannot be reached; "": it can. Port 0 stands for a node that is not asked. All at the same
// time, within `limit`.
std::vector<std::string> try_to_connect(const std::vector<Endpoint>& endpoints, Clock::duration limit);

// Measures the latency and then, for `time`, the bandwidth. Takes less than `time` and 2.2 s more.
LinkFacts measure_link(const Endpoint& endpoint, Clock::duration time);

}  // namespace fleetrun::launch
