// What a fleetrun tells those that it starts on other nodes. It goes over their standard input, because it contains the key of the run.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/run/run_key.h"
#include "base/system/environment.h"
#include "launch/cli/flags/launch_options.h"
#include "launch/schedulers/allocation.h"

namespace fleetrun::launch {

struct AgentOrder {
  RunKey key;
  std::string folder;                    // where the run was started
  std::vector<std::string> environment;  // "NAME=value", to be set; empty: the starter forwards it
  CalledAs called_as = CalledAs::fleetrun;
  std::string hosts;        // the text of --hosts, also where a file listed them; "": a scheduler did
  Allocation allocation;    // its nodes, their source, its job and what starts the others
  std::optional<int> node;  // that the agent is; none: its variables or the name of its host tell
  bool operator==(const AgentOrder&) const = default;
};

std::string to_text(const AgentOrder& order);         // one line, with its end
AgentOrder parse_agent_order(std::string_view line);  // Throws Error(protocol).

// The variables of `environment` that mean the same on another host, as lines.
std::vector<std::string> forwarded_variables(const Environment& environment);

// A variable that chooses devices. If the batch system of a node has set it there, it stays.
bool chooses_devices(const std::string& name);

// The node that an agent is: what the order says, or the variable of its starter, or the name of its host. None: no node has that name.
std::optional<int> find_agent_node(const AgentOrder& order, const Environment& environment,
                                   const std::string& host);

}  // namespace fleetrun::launch
