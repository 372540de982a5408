// Resolves the names of nodes to addresses. May ask the resolver, and wait for its answer.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

// A node as the user named it, and the address of that name on this host ("": it has none).
struct NamedNode {
  std::string name;
  std::string address;
};

// `family`: AF_INET or AF_INET6. "": the name has no address of this family, or this host does not know it.
std::string resolve_name(const std::string& name, int family);
std::string resolve_name(const std::string& name);  // over IPv4 if it has such an address, else over IPv6

// IPv4 addresses if every name has one, else IPv6 addresses if every name has one, else the results of
// resolve_name(name).
std::vector<NamedNode> resolve_all(const std::vector<std::string>& names);

}  // namespace fleetrun::launch
