// Which curves a history has: loss, accuracy, learning rate and throughput over the steps.
#pragma once
#include <string>
#include <vector>

#include "launch/page/chart.h"
#include "launch/page/history.h"

namespace fleetrun::launch {

struct NamedHistory {
  std::string name;  // "": there is only one
  History history;
};

// The charts that have points, each with the curves of all histories. With several histories, each one has a color, and its
// evaluations are dots; with one, the evaluations have a color of their own.
std::vector<Chart> charts_of(const std::vector<NamedHistory>& histories);

}  // namespace fleetrun::launch
