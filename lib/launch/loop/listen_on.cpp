#include "launch/loop/listen_on.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

#include <fmt/format.h>

#include "base/system/peer_watch.h"

namespace fleetrun::launch {
namespace {

// An address of either family as the kernel takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&storage); }
  in_port_t& port() {
    return storage.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(storage).sin_port
                                        : reinterpret_cast<sockaddr_in6&>(storage).sin6_port;
  }
  std::string text() {
    std::array<char, INET6_ADDRSTRLEN> host{};
    void* const bytes = storage.ss_family == AF_INET
                            ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(storage).sin_addr)
                            : &reinterpret_cast<sockaddr_in6&>(storage).sin6_addr;
    ::inet_ntop(storage.ss_family, bytes, host.data(), host.size());
    return fmt::format("{}:{}", host.data(), ntohs(port()));
  }
};

std::optional<SocketAddress> parse_address(const Endpoint& endpoint) {
  SocketAddress address;
  auto& four = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& six = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (::inet_pton(AF_INET, endpoint.host.c_str(), &four.sin_addr) == 1)
    address.storage.ss_family = AF_INET;
  else if (::inet_pton(AF_INET6, endpoint.host.c_str(), &six.sin6_addr) == 1)
    address.storage.ss_family = AF_INET6;
  else
    return std::nullopt;
  address.port() = htons(endpoint.port);
  return address;
}

}  // namespace

UniqueFd listen_on(Endpoint& endpoint, std::size_t backlog) {
  errno = EINVAL;
  auto address = parse_address(endpoint);
  if (!address) return UniqueFd();
  const int family = address->storage.ss_family, on = 1;
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd || ::bind(fd.get(), address->generic(), address->size) != 0 ||
      ::listen(fd.get(), static_cast<int>(backlog)) != 0 ||
      ::getsockname(fd.get(), address->generic(), &address->size) != 0)
    return UniqueFd();  // close() of a socket leaves errno alone
  endpoint.port = ntohs(address->port());
  return fd;
}

std::string welcome_peer(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  keep_asking(fd);
  return name_of_peer(fd);
}

std::string name_of_peer(int fd) {
  SocketAddress address;
  return ::getpeername(fd, address.generic(), &address.size) == 0 ? address.text() : "a peer that left";
}

}  // namespace fleetrun::launch
