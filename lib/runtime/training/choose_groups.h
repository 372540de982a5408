// Whether all-reduces go in groups of ranks where the job leaves it open: measured at the start, the same on all ranks.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/job_spec.h"

namespace fleetrun::runtime {

// How many ranks each host has, if there are several hosts, each with the same number of consecutive ranks, above 1; else nothing.
// `hosts`: by rank, as comm::World has them.
std::optional<int> ranks_per_host(const std::vector<std::string>& hosts);

// How long one all-reduce takes, in microseconds.
struct AllReduceTimes {
  double flat = 0, leader = 0, scatter = 0;
};
// Groups only where they are clearly faster, so that the next start of a job decides alike. Nothing: no groups.
std::optional<job::HierarchicalAlgorithm> fastest(const AllReduceTimes& times);

// The settled strategy with the choice made. Measures if the job does not set use_hierarchical_allreduce, the search for
// algorithms is on, the device is the CPU, and ranks_per_host() has a number; rank 0 says what it found.
job::StrategySpec choose_groups(const job::StrategySpec& strategy, comm::World& world, ProgressPage& page);

}  // namespace fleetrun::runtime
