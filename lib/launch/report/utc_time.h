// Times of day as reports say them.
#pragma once
#include <chrono>
#include <string>

namespace fleetrun::launch {

std::string utc_time(std::chrono::system_clock::time_point time);  // "2021-01-19T14:17:32.007Z"

}  // namespace fleetrun::launch
