// Which system started this process, out of everything that its variables say.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "launch/schedulers/allocation.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {

// `word` is the value of --scheduler: "auto", or the only system to look for. Nothing inside a rank of another run, which inherits what
// was said to its launcher. Throws Error(usage) when two systems disagree about the nodes, and shows both.
std::optional<Allocation> recognise(const SchedulerFacts& facts, const std::string& word);

// A port where the nodes of a job meet, from 15000 to 24999: below those that Linux gives out, and the same on all nodes. Jobs with
// consecutive numbers get different ports. nullopt: `job_id` has no number.
std::optional<std::uint16_t> port_of_job(const std::string& job_id);

}  // namespace fleetrun::launch
