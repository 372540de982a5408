#include "launch/host/port_owner.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/system/unique_fd.h"

namespace fleetrun::launch::port_owner_test {
namespace {

TEST_CASE("the inode of a port's socket is found in the kernel's table") {
  const std::string table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n"
      "   1: 0100007F:0050 0100007F:1F91 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n";
  CHECK(find_socket_inode(table, 8080) == "4711");
  CHECK(find_socket_inode(table, 80).empty());
  CHECK(find_socket_inode(table, 8081).empty());
}

TEST_CASE("the process that listens on a port is named with its command") {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(socket.get(), 1) == 0);
  REQUIRE(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  const std::string owner = describe_port_owner(ntohs(address.sin_port));
  CHECK(owner.starts_with("pid " + std::to_string(::getpid()) + " ("));
  CHECK(owner.find("launch_test") != std::string::npos);
}

}  // namespace
}  // namespace fleetrun::launch::port_owner_test
