// --exclude_hosts and --topology: which of the nodes that a scheduler or a list of hosts names take part in the run, and in which order.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flags/launch_options.h"
#include "launch/schedulers/allocation.h"
#include "launch/schedulers/sources.h"

namespace fleetrun::launch {

// The hosts of a file: a name, or a list as Slurm writes it, on each line; comments after '#'. Throws Error(usage) with the number of
// the line.
std::vector<std::string> parse_excluded_hosts(const std::string& path, const std::string& text);

// Leaves out nodes of the allocation, orders the rest, and finds the place of this node again. Adds a line for the user to
// `options.notes`. Throws Error(usage) when no node is left, or when only the number of the nodes is known.
void arrange_nodes(LaunchOptions& options, const SchedulerFacts& facts, Allocation& allocation);

// The same for the hosts of --hosts or --hostfile, before they become an allocation.
void arrange_host_list(LaunchOptions& options, const SchedulerFacts& facts);

// Orders the addresses of --ips; --node_rank counts in the list as the user wrote it. Throws Error(usage) for --exclude_hosts.
void arrange_addresses(LaunchOptions& options, const SchedulerFacts& facts);

// Nothing lists the nodes. Throws Error(usage) if there are several.
void arrange_unlisted(LaunchOptions& options);

}  // namespace fleetrun::launch
