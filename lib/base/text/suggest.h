// "did you mean ...?": the known name that somebody most likely meant to type.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun {

// The candidate with the fewest typing slips (a letter too many, missing, wrong, or two swapped; case and '-'
// for '_' cost nothing), the first one when several are equal. A name that was cut short counts as meant,
// too: "--nproc" finds "--nproc_per_node". Nothing when no candidate is near enough.
std::optional<std::string> closest(std::string_view found, const std::vector<std::string>& candidates);

}  // namespace fleetrun
