#include "launch/plan/resolve_names.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "base/system/socket_address.h"

namespace fleetrun::launch {
namespace {

std::vector<NamedNode> resolve_all(const std::vector<std::string>& names, int family) {
  std::vector<NamedNode> nodes;
  nodes.reserve(names.size());
  for (const std::string& name : names) nodes.push_back({name, resolve_name(name, family)});
  return nodes;
}

bool has_address(const NamedNode& node) { return !node.address.empty(); }

}  // namespace

std::string resolve_name(const std::string& name, int family) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  return SocketAddress::from(*found->ai_addr).value().endpoint().host;
}

std::string resolve_name(const std::string& name) {
  const std::string four = resolve_name(name, AF_INET);
  return four.empty() ? resolve_name(name, AF_INET6) : four;
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
