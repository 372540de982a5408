// The figures of a node's ranks as JSON, on their way to the first node. Numbers are texts: a loss may be NaN.
#pragma once
#include <vector>

#include "base/json/json_value.h"
#include "launch/serve/prometheus_text.h"

namespace fleetrun::launch {

JsonValue figures_json(const std::vector<RankMetrics>& ranks);
std::vector<RankMetrics> read_figures(const JsonValue& figures);  // what is missing or of another kind is 0

}  // namespace fleetrun::launch
