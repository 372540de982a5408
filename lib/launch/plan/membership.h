// Which nodes take part in a run, and which of them this node is, as far as the options and the facts of this host
// tell. Decides, and sends nothing.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/endpoint.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/host/host_facts.h"
#include "launch/plan/resolve_names.h"

namespace fleetrun::launch {

struct Membership {
  int nodes = 2;                 // that may join
  int least = 2;                 // that a part of the run needs
  int spares = 0;                // of `nodes`, those that stand by without ranks
  std::optional<int> node_rank;  // none: the first node assigns ranks in order of arrival
  std::string host;  // this node's address as the user wrote it; "": the one that reaches the meeting point
  std::string address;  // the same as a numeric address
  Endpoint
      meeting;  // where the first node waits for the others; its host is "" if this host does not know the name of it
  std::string port_flag = "--master_port";  // that chooses its port: "--master=HOST:PORT"
  NamedNode first = {};                     // that host, with all addresses where it may wait
  bool may_be_first = false;                // the meeting point is on this host
  std::vector<std::string> names;           // of all nodes, in order; none with --master
  std::vector<NamedNode> listed = {};       // the same with their addresses
  std::string warning = {};                 // of a meeting point that other hosts cannot reach

  std::string name_of(int node) const;  // "node 2 (10.0.0.3)"
  std::vector<Endpoint> meetings()
      const;  // where the first node may wait; none: this host does not know its name
};

// Whether nodes may come and go during the run.
bool is_elastic(const LaunchOptions& options);
// --max_restart. An elastic run for which the user gave no number may start again as often as with PaddlePaddle.
int most_restarts(const LaunchOptions& options);
// Whether fleetrun may start the ranks again: after a failure, or when a node comes or goes.
bool may_start_again(const LaunchOptions& options);

// Whether the options ask for more than one node.
bool asks_for_several_nodes(const LaunchOptions& options);

// Notes the flags that have no effect on a run with one node.
void note_flags_of_several_nodes(LaunchOptions& options);

// This node cannot join the run until these names have addresses.
std::vector<std::string> needed_names(const LaunchOptions& options);

// Resolves the names in --ips on this host.
std::vector<NamedNode> resolve_names(const LaunchOptions& options);

// `nodes` are those of --ips. In an elastic run, some of them may have no address here. Throws Error(usage) when the options contradict each other or the facts.
Membership resolve_membership(const LaunchOptions& options, std::vector<NamedNode> nodes,
                              const HostFacts& host);

}  // namespace fleetrun::launch
