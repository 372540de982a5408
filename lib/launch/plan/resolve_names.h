// From the names of nodes to their addresses. May ask the resolver, and wait for it.
#pragma once
#include <string>
#include <vector>

namespace fleetrun::launch {

// A node as the user named it, and the address that this name means here ("" when it means none).
struct NamedNode {
  std::string name;
  std::string address;
};

// `family`: AF_INET or AF_INET6. "": the name has no address of this family, or means nothing here.
std::string resolve_name(const std::string& name, int family);
std::string resolve_name(const std::string& name);  // over IPv4 if it has such an address, else over IPv6

// All over IPv4 if each name has such an address; else all over IPv6. When neither family has them all, each as resolve_name(name).
std::vector<NamedNode> resolve_all(const std::vector<std::string>& names);

}  // namespace fleetrun::launch
