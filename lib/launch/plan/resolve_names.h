// Resolves the names of nodes to addresses. May ask the resolver, and wait for its answer.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

// A node as the user named it, and the addresses of that name on this host, all of one family.
struct NamedNode {
  std::string name;
  std::string address;                   // the first; "": the name has none
  std::vector<std::string> others = {};  // those after it
};

std::vector<std::string> addresses_of(const NamedNode& node);  // `address` and the others

// The address of a name, of its addresses the first that other hosts may reach. `family`: AF_INET or AF_INET6. "": the name
// has no address of this family, or this host does not know it.
std::string resolve_name(const std::string& name, int family);
std::string resolve_name(const std::string& name);  // over IPv4 if it has such an address, else over IPv6

// All addresses of a name: over IPv4 if it has such an address, else over IPv6. Those of loopback and the link-local ones come last.
NamedNode resolve_node(const std::string& name);
NamedNode resolve_node(const std::string& name, int family);

// IPv4 addresses if every name has one, else IPv6 addresses if every name has one, else the results of
// resolve_name(name).
std::vector<NamedNode> resolve_all(const std::vector<std::string>& names);

}  // namespace fleetrun::launch
