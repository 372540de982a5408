// Chooses whether all-reduces use groups of ranks, if the job leaves that open. Measures at the start; all ranks get
// the same result.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/run/progress_page.h"
#include "comm/make_communicator.h"
#include "job/spec/job_spec.h"

namespace fleetrun::runtime {

// The number of ranks per host. Nothing unless there are several hosts and all have the same number of consecutive
// ranks, 2 or more. `hosts`: by rank, as in comm::World.
std::optional<int> ranks_per_host(const std::vector<std::string>& hosts);

// How long one all-reduce takes, in microseconds.
struct AllReduceTimes {
  double flat = 0, leader = 0, scatter = 0;
};
// Returns groups only if they are clearly faster, so that the next start of a job decides the same. Nothing: no groups.
std::optional<job::HierarchicalAlgorithm> fastest(const AllReduceTimes& times);

// Returns the settled strategy with the choice made. Measures only if the job does not set use_hierarchical_allreduce,
// the search for algorithms is on, the device is the CPU, and ranks_per_host() has a number. Rank 0 prints the result.
job::StrategySpec choose_groups(const job::StrategySpec& strategy, comm::World& world, ProgressPage& page);

}  // namespace fleetrun::runtime
