// The curves of several runs over each other: what `fleetrun plot` draws.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "launch/page/history_charts.h"

namespace fleetrun::launch {

constexpr std::string_view kOverlayStart = "<!-- made by fleetrun plot -->";  // marks a file as ours

// One picture with a legend. Throws Error(config) when no history has a row.
std::string overlay_svg(const std::vector<NamedHistory>& histories);

}  // namespace fleetrun::launch
