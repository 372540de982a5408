// The figures of a node's ranks as JSON, which the node sends to the first node. A floating-point number is a string,
// because a loss may be NaN.
#pragma once
#include <vector>

#include "base/json/json_value.h"
#include "launch/serve/prometheus_text.h"

namespace fleetrun::launch {

// "busy_percent", "memory_used" and so on, of what is known; null: nothing is.
JsonValue gpu_json(const GpuLoad& load);

JsonValue figures_json(const std::vector<RankMetrics>& ranks);
std::vector<RankMetrics> read_figures(const JsonValue& figures);  // a value missing or mistyped is 0

}  // namespace fleetrun::launch
