// The switches of a cluster, and an order of the nodes that keeps neighbours of a ring near each other.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace fleetrun::launch {

struct Switch {
  std::string name;
  std::vector<std::string> switches, nodes;  // that are connected to it

  bool operator==(const Switch&) const = default;
};

// Slurm's topology.conf for topology/tree ("man topology.conf"): lines such as "SwitchName=s1 Nodes=n[1-4]" or
// "SwitchName=top Switches=s[1-2]", and comments after '#'. Throws Error(usage) with the number of the line.
std::vector<Switch> parse_topology(const std::string& path, const std::string& text);

// The places of `hosts` in the new order. The first host stays the first. Hosts of one switch follow each other, and so do the
// switches of one upper switch. Otherwise hosts keep their order. A host may have a domain that the file does not have. Hosts that the
// file does not name follow each other. Throws Error(usage) if a switch is below itself.
std::vector<std::size_t> order_by_switch(const std::vector<std::string>& hosts,
                                         const std::vector<Switch>& switches);

// Of `hosts`, those that no switch has.
std::vector<std::string> without_switch(const std::vector<std::string>& hosts,
                                        const std::vector<Switch>& switches);

// Whether both name the same host: equal, or equal up to a domain that only one of them has.
bool is_same_host(const std::string& one, const std::string& other);

}  // namespace fleetrun::launch
