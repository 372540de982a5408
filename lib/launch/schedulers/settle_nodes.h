// Fills in the flags about nodes that the user left out, from what a scheduler or a list of hosts says.
#pragma once
#include <optional>
#include <string>

#include "launch/cli/flags/launch_options.h"
#include "launch/schedulers/allocation.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {

// A flag, a variable of fleetrun and the file of --config win over what is recognised. Nothing is recognised when they say which nodes
// take part. Throws Error(usage) when the sources contradict each other or make no sense.
std::optional<Allocation> settle_nodes(LaunchOptions& options, const SchedulerFacts& facts);

// Takes the nodes of `allocation`, and the place of this node among them, for each flag that the user left out.
void take_nodes(LaunchOptions& options, const Allocation& allocation);

// Throws Error(usage) when a run cannot start from here: as one of several tasks of a node, or in a batch script on one of several nodes.
void check_can_start(const LaunchOptions& options, const std::optional<Allocation>& allocation);

// Nodes of a cluster mostly share the folder in which their command runs, and a log folder belongs to one fleetrun. So node 3 gets
// "log.node3" unless the user chose a folder; node 0 keeps "log". `source`: what told the rank of the node.
void use_own_log_folder(LaunchOptions& options, int node_rank, const std::string& source);

}  // namespace fleetrun::launch
