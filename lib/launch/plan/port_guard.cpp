#include "launch/plan/port_guard.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/socket_address.h"
#include "launch/host/port_owner.h"

namespace fleetrun::launch {
namespace {

constexpr std::uint16_t kPaddlePort = 6070;  // of the first rank of each of several nodes
constexpr std::size_t kMostTries = 32;       // ports that the kernel picks and other launchers have claimed

Error port_error(std::uint16_t port, const std::string& what, int code) {
  return Error(code == EADDRINUSE || code == EACCES ? ErrorKind::temporary : ErrorKind::os,
               fmt::format("port {} {}: {}", port, what, describe_errno(code)));
}

Error taken(std::uint16_t port, int code) {
  if (port == 0)
    return Error(ErrorKind::temporary, fmt::format("found no free port: {}", describe_errno(code)),
                 "sysctl net.ipv4.ip_local_port_range shows the range of ports to choose from");
  const std::string owner = code == EADDRINUSE ? describe_port_owner(port) : "";
  return port_error(port, owner.empty() ? "cannot be held" : "is taken by " + owner, code);
}

// Bound to every address, because a worker may listen on any of them. Port 0: the kernel picks one. Without a
// descriptor errno says why.
// A socket of IPv6 holds the port for both families.
UniqueFd bind_socket(int family, std::uint16_t port) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) throw Error(ErrorKind::os, fmt::format("holding a port: {}", describe_errno(errno)));
  const int on = 1, off = 0;
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  const SocketAddress address = SocketAddress::any(family, port);
  if (::bind(fd.get(), address.data(), address.size()) != 0) return UniqueFd();
  return fd;
}

std::uint16_t port_of(const UniqueFd& socket) {
  const auto address = SocketAddress::own_end(socket.get());
  if (!address) throw Error(ErrorKind::os, fmt::format("reading a held port: {}", describe_errno(errno)));
  return address->endpoint().port;
}

// Holders of one user share a port with each other, so among launchers a name in the abstract socket
// namespace (one per network namespace, as ports are) says whose it is. Nothing when somebody has that name.
std::optional<UniqueFd> claim(std::uint16_t port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) throw Error(ErrorKind::os, fmt::format("claiming port {}: {}", port, describe_errno(errno)));
  const std::string name = fmt::format("fleetrun-port-{}", port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  if (errno != EADDRINUSE) throw port_error(port, "cannot be claimed", errno);
  return std::nullopt;
}

std::uint16_t hold_named(int family, std::uint16_t port, HeldPorts& held) {
  UniqueFd socket = bind_socket(family, port);
  if (!socket) throw taken(port, errno);
  std::optional<UniqueFd> name = claim(port);
  if (!name) throw port_error(port, "is held by another fleetrun", EADDRINUSE);
  held.claims.push_back(std::move(*name));
  held.holders.push_back(std::move(socket));
  return port;
}

// A port that the kernel picks is held by nobody, but a launcher with --no_port_hold may have claimed it. When all that
// we are offered are claimed, somebody takes the names for something else, and holding the port has to do.
std::uint16_t hold_any(int family, HeldPorts& held) {
  std::vector<UniqueFd> passed_over;  // held meanwhile, so that the kernel picks another one
  while (passed_over.size() < kMostTries) {
    UniqueFd socket = bind_socket(family, 0);
    if (!socket && passed_over.empty()) throw taken(0, errno);
    if (!socket) break;
    const std::uint16_t port = port_of(socket);
    if (std::optional<UniqueFd> name = claim(port)) {
      held.claims.push_back(std::move(*name));
      held.holders.push_back(std::move(socket));
      return port;
    }
    passed_over.push_back(std::move(socket));
  }
  held.holders.push_back(std::move(passed_over.back()));
  return port_of(held.holders.back());
}

bool try_to_hold(int family, std::uint16_t port, HeldPorts& held) {
  UniqueFd socket = bind_socket(family, port);
  std::optional<UniqueFd> name = socket ? claim(port) : std::nullopt;
  if (!name) return false;
  held.claims.push_back(std::move(*name));
  held.holders.push_back(std::move(socket));
  return true;
}

std::uint16_t hold(int family, std::uint16_t wanted, HeldPorts& held) {
  return wanted == 0 ? hold_any(family, held) : hold_named(family, wanted, held);
}

std::uint16_t nth_port(const ClusterSpec& cluster, int index) {
  if (!cluster.start_port) return 0;
  const int port = *cluster.start_port + index;
  if (port > 65535)
    throw Error(ErrorKind::usage, fmt::format("--start_port is {}, {} ports from there pass 65535",
                                              *cluster.start_port, cluster.local_size() + 1));
  return static_cast<std::uint16_t>(port);
}

int family_of(const ClusterSpec& cluster) { return cluster.ipv6 ? AF_INET6 : AF_INET; }

std::uint16_t hold_nth(const ClusterSpec& cluster, int index, HeldPorts& held) {
  const int family = family_of(cluster);
  if (cluster.start_port || cluster.node_count() == 1) return hold(family, nth_port(cluster, index), held);
  const auto usual = static_cast<std::uint16_t>(kPaddlePort + index);
  return try_to_hold(family, usual, held) ? usual : hold_any(family, held);
}

}  // namespace

HeldPorts hold_ports(const ClusterSpec& cluster) {
  HeldPorts held;
  for (int i = 0; i < cluster.local_size(); ++i)
    held.endpoints.ranks.push_back({cluster.host, hold_nth(cluster, i, held)});
  if (cluster.master) {
    held.endpoints.master = {cluster.master->host, hold(family_of(cluster), cluster.master->port, held)};
  } else {
    held.endpoints.master = {cluster.host, hold_nth(cluster, cluster.local_size(), held)};
  }
  if (!cluster.hold_ports)
    held.holders.clear();  // all at once: a port that was free again could be chosen twice
  return held;
}

Endpoints expect_endpoints(const ClusterSpec& cluster) {
  const std::uint16_t first = cluster.start_port.value_or(kPaddlePort);
  Endpoints endpoints;
  for (const NodeSpec& node : cluster.nodes)
    for (int i = 0; i < node.ranks(); ++i)
      endpoints.ranks.push_back({node.host, static_cast<std::uint16_t>(first + i)});
  endpoints.master = {cluster.nodes.front().host,
                      static_cast<std::uint16_t>(first + cluster.nodes.front().ranks())};
  return endpoints;
}

}  // namespace fleetrun::launch
