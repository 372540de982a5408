// Times of day as reports say them.
#pragma once
#include <chrono>
#include <optional>
#include <string>

namespace fleetrun::launch {

std::string utc_time(std::chrono::system_clock::time_point time);  // "2021-01-19T14:17:32.007Z"
// Back again, in whole seconds; none if the text is not such a time.
std::optional<std::chrono::system_clock::time_point> parse_utc_time(const std::string& text);

}  // namespace fleetrun::launch
