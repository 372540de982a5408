// An IPv4 or IPv6 address in the kernel's format. Only this file converts it to an Endpoint and back.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "base/system/endpoint.h"

namespace fleetrun {

class SocketAddress {
 public:
  // Nothing when the host is not a numeric address.
  static std::optional<SocketAddress> from(const Endpoint& endpoint);
  // Nothing when the address is neither IPv4 nor IPv6. `address` must point to an object of its family's size.
  static std::optional<SocketAddress> from(const sockaddr& address);
  // All addresses of this host.
  static SocketAddress any(int family, std::uint16_t port);
  // The ends of a socket. Nothing when the descriptor has none over IPv4 or IPv6; errno says why.
  static std::optional<SocketAddress> own_end(int fd);
  static std::optional<SocketAddress> end_of_peer(int fd);
  // The numeric address at which others reach our end. If the peer is on this host, too, it is the peer's, because the kernel may have given
  // our end another one of the same interface. Nothing when the descriptor has none over IPv4 or IPv6.
  static std::optional<std::string> own_address(int fd);

  int family() const { return storage_.ss_family; }  // AF_INET or AF_INET6
  bool is_of_this_host() const;  // an interface has it; of 127.0.0.0/8 usually only 127.0.0.1
  bool is_link_local() const;    // such as fe80::1, which means another host on each interface
  Endpoint endpoint() const;     // with a numeric address
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const;

 private:
  sockaddr_storage storage_{};
};

}  // namespace fleetrun
