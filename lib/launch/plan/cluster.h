// Who takes part in a run: the nodes, their ranks, and the devices of each rank. Decided from options and facts only.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/system/endpoint.h"
#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/console/console_plan.h"
#include "launch/host/host_facts.h"
#include "launch/plan/embedded_runtime.h"
#include "launch/plan/membership.h"

namespace fleetrun::launch {

enum class DeviceKind { cpu, cuda };

struct NodeSpec {
  std::string host;                          // the node's address in endpoints
  std::vector<std::vector<int>> device_ids;  // of each rank of the node

  int ranks() const { return static_cast<int>(device_ids.size()); }
};

struct ClusterSpec {
  std::string host = "127.0.0.1";  // the address in every endpoint of this node
  std::vector<NodeSpec> nodes;     // all nodes, in rank order; empty: this node is alone
  int node_rank = 0;
  bool ipv6 = false;      // the nodes reach each other over IPv6
  std::string interface;  // the network interface that has `host`; "": unknown
  int cores = 1;          // of this node, for all its ranks
  DeviceKind device = DeviceKind::cpu;
  bool device_ids_given = false;             // FLAGS_selected_gpus is set on CUDA, and on CPU with --gpus
  bool hide_gpus = false;                    // --device=cpu on a machine with GPUs
  std::vector<std::string> visible_gpus;     // CUDA_VISIBLE_DEVICES
  bool own_gpus_only = false;                // each worker sees its own GPUs only, as numbers 0 and up
  std::vector<std::vector<int>> device_ids;  // of each local rank, indexes into visible_gpus or worker slots
  std::optional<std::uint16_t> start_port;
  std::optional<Endpoint> master;      // port 0: any free port
  std::vector<std::vector<int>> cpus;  // of each local rank; empty: not bound
  bool hold_ports = true;
  ConsolePlan console;
  std::string note;  // of the GPU mapping, printed verbatim

  int local_size() const { return static_cast<int>(device_ids.size()); }
  int node_count() const { return nodes.empty() ? 1 : static_cast<int>(nodes.size()); }
  int first_rank() const;  // number in the whole run of this node's first rank
  int world_size() const;
};

// Throws Error(usage) if --debug_rank, --env or --interactive names a rank that the run does not have, or --interactive one that has no
// terminal.
void check_named_ranks(const LaunchOptions& options, const ClusterSpec& cluster);

// `embedded`: its job file may name a device, and on CUDA it needs the plug-in; none: the ranks run another program.
// Without `members` this node is alone. Until other nodes have joined, assumes that they are like this one. Throws
// Error(usage) when the options contradict the facts.
ClusterSpec resolve_cluster(const LaunchOptions& options, const HostFacts& host,
                            const std::optional<EmbeddedRuntime>& embedded, const Environment& environment,
                            const std::optional<Membership>& members = std::nullopt);

}  // namespace fleetrun::launch
