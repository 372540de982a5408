// What the time of a rank goes into. The six add up to the time since the run began; docs/seeing-a-run.md says what
// each of them is.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fleetrun {

enum class TimeUse { compute, communication, data, checkpoint, restart, idle };
constexpr std::size_t kTimeUses = 6;
constexpr std::array<std::string_view, kTimeUses> kTimeUseNames = {"compute",    "communication", "data",
                                                                   "checkpoint", "restart",       "idle"};

using TimeUses = std::array<std::int64_t, kTimeUses>;  // nanoseconds, by TimeUse

}  // namespace fleetrun
