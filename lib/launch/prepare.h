// What launch() and examine() do first, with the same results.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system/environment.h"
#include "job/parse_job.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/host/host_facts.h"
#include "launch/loop/clock.h"
#include "launch/nodes/node_messages.h"
#include "launch/plan/cluster.h"
#include "launch/plan/embedded_runtime.h"
#include "launch/plan/membership.h"
#include "launch/schedulers/allocation.h"
#include "launch/starters/other_nodes.h"

namespace fleetrun::launch {

// Something has started this fleetrun on a node that --exclude_hosts leaves out. Prints that.
bool stays_out(const LaunchOptions& options, const std::optional<Allocation>& allocation);

// Nothing for a program that is not a job file. Throws everything that is wrong with a job at once, before a process is started or a
// file created.
std::optional<job::ParsedJob> read_job(const LaunchOptions& options);

std::optional<EmbeddedRuntime> runtime_of(const std::optional<job::ParsedJob>& job);

HostFacts probe(const LaunchOptions& options);

// In Kubernetes, the name of a pod gets its address when the pod starts: waits until this host knows the names that it needs, at most for
// so long. Returns the signal that ended the wait, or 0.
int wait_for_names(const LaunchOptions& options, const Environment& environment, Clock::duration patience);

// Nothing when this node is alone.
std::optional<Membership> find_members(const LaunchOptions& options, const HostFacts& host);

// Changes options.log_dir: in a cluster, each node has its own. A user who lists the nodes starts them by hand, and each of them writes log/,
// unless the nodes share this folder.
void use_log_folder_of_node(LaunchOptions& options, const Membership& members,
                            const std::optional<Allocation>& allocation);

// What the other nodes compare with their own: the text of the job file, or the words of another program.
Terms find_terms(const LaunchOptions& options, const ClusterSpec& cluster,
                 const std::optional<job::ParsedJob>& job);

// Whether this fleetrun starts those on the other nodes.
bool starts_others(const LaunchOptions& options, const std::optional<Allocation>& allocation);

// Starts them. Sets options.given_key: the key of this run needs no file, because it goes to the other nodes with the order to start.
// Null: another fleetrun has started this one, or something else starts all nodes.
std::unique_ptr<OtherNodes> start_others(LaunchOptions& options, const Environment& environment,
                                         const std::optional<Allocation>& allocation,
                                         const std::vector<std::string>& words);

}  // namespace fleetrun::launch
