#include "launch/plan/port_guard.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <set>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "base/system/socket_address.h"
#include "launch/loop/listen_on.h"
#include "support/leave_out.h"
#include "support/with_ports.h"

namespace fleetrun::launch::port_guard_test {
namespace {

ClusterSpec cluster_of(int ranks) {
  ClusterSpec cluster;
  for (int i = 0; i < ranks; ++i) cluster.device_ids.push_back({i});
  return cluster;
}

bool can_listen(std::uint16_t port, const std::vector<int>& options) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  for (const int option : options) ::setsockopt(fd.get(), SOL_SOCKET, option, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::listen(fd.get(), 1) == 0;
}

bool can_listen_on_six(std::uint16_t port, bool both_families, const std::vector<int>& options) {
  const UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1, only_six = both_families ? 0 : 1;
  ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_six, sizeof only_six);
  for (const int option : options) ::setsockopt(fd.get(), SOL_SOCKET, option, &on, sizeof on);
  const SocketAddress address = SocketAddress::any(AF_INET6, port);
  return ::bind(fd.get(), address.data(), address.size()) == 0 && ::listen(fd.get(), 1) == 0;
}

// Free now; a test needs one that it can name.
std::uint16_t some_port(int ranks) { return hold_ports(cluster_of(ranks)).endpoints.ranks.front().port; }

TEST_CASE("every rank and the master get a port of their own") {
  const HeldPorts held = hold_ports(cluster_of(4));
  std::set<int> ports = {held.endpoints.master.port};
  for (const Endpoint& endpoint : held.endpoints.ranks) {
    CHECK(endpoint.host == "127.0.0.1");
    ports.insert(endpoint.port);
  }
  CHECK(ports.size() == 5);
  CHECK(ports.count(0) == 0);
}

TEST_CASE("a worker can listen on its held port, a program that does not know of it cannot") {
  const HeldPorts held = hold_ports(cluster_of(1));
  const std::uint16_t port = held.endpoints.ranks[0].port;
  CHECK_FALSE(can_listen(port, {}));
  CHECK(can_listen(port, {SO_REUSEADDR}));
  CHECK(can_listen(port, {SO_REUSEPORT}));
  CHECK(can_listen(port, {SO_REUSEADDR, SO_REUSEPORT}));
}

TEST_CASE("over IPv6 a port is held for both families") {
  Endpoint six = {"::1", 0};
  if (!listen_on(six, 1)) LEAVE_OUT("this machine has no IPv6");
  ClusterSpec cluster = cluster_of(1);
  cluster.host = "::1";
  cluster.ipv6 = true;
  const HeldPorts held = hold_ports(cluster);
  CHECK(held.endpoints.ranks[0].describe() == "[::1]:" + std::to_string(held.endpoints.ranks[0].port));
  const std::uint16_t port = held.endpoints.ranks[0].port;
  CHECK_FALSE(can_listen(port, {}));
  CHECK(can_listen(port, {SO_REUSEADDR}));
  for (const bool both_families : {true, false}) {
    CHECK_FALSE(can_listen_on_six(port, both_families, {}));
    CHECK(can_listen_on_six(port, both_families, {SO_REUSEADDR}));
    CHECK(can_listen_on_six(port, both_families, {SO_REUSEPORT}));
  }
}

TEST_CASE("ports are free again when their holder goes") {
  const std::uint16_t port = some_port(1);
  CHECK(can_listen(port, {}));
}

TEST_CASE("a start port makes the ports consecutive, the master's last") {
  ClusterSpec cluster = cluster_of(2);
  cluster.start_port = 29170;  // below those that the kernel gives to anybody's connections
  const HeldPorts held = hold_ports(cluster);
  CHECK(held.endpoints.ranks[0].port == 29170);
  CHECK(held.endpoints.ranks[1].port == 29171);
  CHECK(held.endpoints.master.port == 29172);
}

TEST_CASE("two launchers never hold the same port") {
  ClusterSpec cluster = cluster_of(1);
  const HeldPorts first = hold_ports(cluster);
  cluster.start_port = first.endpoints.ranks[0].port;
  CHECK_THROWS_AS(hold_ports(cluster), Error);
}

std::set<int> ports_of(const HeldPorts& held) {
  std::set<int> ports = {held.endpoints.master.port};
  for (const Endpoint& endpoint : held.endpoints.ranks) ports.insert(endpoint.port);
  return ports;
}

UniqueFd take_name_of(int port) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::string name = "fleetrun-port-" + std::to_string(port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
  return fd;
}

TEST_CASE(
    "--no_port_hold --nproc_per_node 200 beside another run: ports that one has claimed are passed over") {
  const bool done = testing::with_ports("40000 40019", [] {
    ClusterSpec cluster = cluster_of(9);
    cluster.hold_ports = false;
    const HeldPorts first = hold_ports(cluster);
    const HeldPorts second = hold_ports(cluster_of(9));
    std::set<int> all = ports_of(first);
    all.merge(ports_of(second));
    CHECK(all.size() == 20);
  });
  if (!done) LEAVE_OUT("takes root, for a network namespace");
}

TEST_CASE("port_squatter.pl: somebody who has taken all names stops nobody from getting ports") {
  const bool done = testing::with_ports("40000 40019", [] {
    std::vector<UniqueFd> taken;
    for (int port = 40000; port < 40020; ++port) taken.push_back(take_name_of(port));
    const HeldPorts held = hold_ports(cluster_of(9));
    CHECK(ports_of(held).size() == 10);
    CHECK_FALSE(can_listen(held.endpoints.master.port, {}));
  });
  if (!done) LEAVE_OUT("takes root, for a network namespace");
}

TEST_CASE("without a free port the range of ports is named") {
  const bool done = testing::with_ports("40000 40004", [] {
    CHECK_THROWS_WITH_AS(hold_ports(cluster_of(5)), "found no free port: Address already in use (errno 98)",
                         Error);
  });
  if (!done) LEAVE_OUT("takes root, for a network namespace");
}

TEST_CASE("a named port that somebody else uses is an error that names it") {
  const UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  REQUIRE(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  ClusterSpec cluster = cluster_of(1);
  cluster.start_port = ntohs(address.sin_port);
  try {
    hold_ports(cluster);
    FAIL("the port is taken");
  } catch (const Error& error) {
    CHECK(error.exit_code() == 75);
    CHECK(error.message() == "port " + std::to_string(*cluster.start_port) +
                                 " cannot be held: Address already in use (errno 98)");
  }
}

TEST_CASE("ports beyond the last one are a usage error") {
  ClusterSpec cluster = cluster_of(2);
  cluster.start_port = 65534;
  CHECK_THROWS_WITH_AS(hold_ports(cluster), "--start_port is 65534, 3 ports from there pass 65535", Error);
}

TEST_CASE("a named master is held on its own port") {
  ClusterSpec cluster = cluster_of(1);
  cluster.master = Endpoint{"127.0.0.1", some_port(1)};
  const HeldPorts held = hold_ports(cluster);
  CHECK(held.endpoints.master == *cluster.master);
  CHECK_FALSE(can_listen(cluster.master->port, {}));
}

}  // namespace
}  // namespace fleetrun::launch::port_guard_test
