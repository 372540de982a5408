#include "launch/plan/resolve_names.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/system/socket_address.h"

namespace fleetrun::launch {
namespace {

// By a host other than this one.
bool may_be_reachable(const std::string& address) {
  const auto parsed = SocketAddress::from(Endpoint{address, 0});
  return parsed && !parsed->is_link_local() && !is_loopback(address);
}

std::vector<NamedNode> resolve_all(const std::vector<std::string>& names, int family) {
  std::vector<NamedNode> nodes;
  nodes.reserve(names.size());
  for (const std::string& name : names) nodes.push_back(resolve_node(name, family));
  return nodes;
}

bool has_address(const NamedNode& node) { return !node.address.empty(); }

}  // namespace

std::vector<std::string> addresses_of(const NamedNode& node) {
  std::vector<std::string> addresses = node.others;
  if (!node.address.empty()) addresses.insert(addresses.begin(), node.address);
  return addresses;
}

NamedNode resolve_node(const std::string& name, int family) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return {name, ""};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::string address = SocketAddress::from(*one->ai_addr).value().endpoint().host;
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(std::move(address));
  }
  std::ranges::stable_partition(addresses, may_be_reachable);
  return {name, addresses.front(), {addresses.begin() + 1, addresses.end()}};
}

std::string resolve_name(const std::string& name, int family) { return resolve_node(name, family).address; }

std::string resolve_name(const std::string& name) { return resolve_node(name).address; }

NamedNode resolve_node(const std::string& name) {
  NamedNode four = resolve_node(name, AF_INET);
  return has_address(four) ? four : resolve_node(name, AF_INET6);
}

std::vector<NamedNode> resolve_all(const std::vector<std::string>& names) {
  std::vector<NamedNode> four = resolve_all(names, AF_INET);
  if (std::all_of(four.begin(), four.end(), has_address)) return four;
  std::vector<NamedNode> six = resolve_all(names, AF_INET6);
  if (std::all_of(six.begin(), six.end(), has_address)) return six;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!has_address(four[i])) four[i] = six[i];
  return four;
}

}  // namespace fleetrun::launch
