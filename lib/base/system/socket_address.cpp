#include "base/system/socket_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>

#include <array>
#include <cstring>
#include <memory>

namespace fleetrun {
namespace {

socklen_t size_of(int family) { return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }

using End = int (*)(int fd, sockaddr* address, socklen_t* size);

std::optional<SocketAddress> find_end(int fd, End end) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* const generic = reinterpret_cast<sockaddr*>(&storage);
  return end(fd, generic, &size) == 0 ? SocketAddress::from(*generic) : std::nullopt;
}

}  // namespace

std::optional<SocketAddress> SocketAddress::from(const Endpoint& endpoint) {
  SocketAddress address = any(is_ipv6(endpoint.host) ? AF_INET6 : AF_INET, endpoint.port);
  void* const bytes = address.family() == AF_INET
                          ? static_cast<void*>(&reinterpret_cast<sockaddr_in&>(address.storage_).sin_addr)
                          : &reinterpret_cast<sockaddr_in6&>(address.storage_).sin6_addr;
  if (::inet_pton(address.family(), endpoint.host.c_str(), bytes) != 1) return std::nullopt;
  return address;
}

std::optional<SocketAddress> SocketAddress::from(const sockaddr& address) {
  if (address.sa_family != AF_INET && address.sa_family != AF_INET6) return std::nullopt;
  SocketAddress copy;
  std::memcpy(&copy.storage_, &address, size_of(address.sa_family));
  return copy;
}

SocketAddress SocketAddress::any(int family, std::uint16_t port) {
  SocketAddress address;  // INADDR_ANY and in6addr_any are zeros
  address.storage_.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET)
    reinterpret_cast<sockaddr_in&>(address.storage_).sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6&>(address.storage_).sin6_port = htons(port);
  return address;
}

std::optional<SocketAddress> SocketAddress::own_end(int fd) {
  return find_end(fd, [](auto... all) { return ::getsockname(all...); });
}

std::optional<SocketAddress> SocketAddress::end_of_peer(int fd) {
  return find_end(fd, [](auto... all) { return ::getpeername(all...); });
}

std::optional<std::string> SocketAddress::own_address(int fd) {
  const auto own = own_end(fd), peer = end_of_peer(fd);
  if (!own) return std::nullopt;
  return (peer && peer->is_of_this_host() ? peer : own)->endpoint().host;
}

bool SocketAddress::is_of_this_host() const {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  const std::string host = endpoint().host;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const auto address = one->ifa_addr == nullptr ? std::nullopt : from(*one->ifa_addr);
    if (address && address->endpoint().host == host) return true;
  }
  return false;
}

bool SocketAddress::is_link_local() const {
  return family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(storage_).sin6_addr);
}

Endpoint SocketAddress::endpoint() const {
  std::array<char, INET6_ADDRSTRLEN> host{};
  const auto& four = reinterpret_cast<const sockaddr_in&>(storage_);
  const auto& six = reinterpret_cast<const sockaddr_in6&>(storage_);
  const void* const bytes = family() == AF_INET ? static_cast<const void*>(&four.sin_addr) : &six.sin6_addr;
  ::inet_ntop(family(), bytes, host.data(), host.size());
  return {host.data(), ntohs(family() == AF_INET ? four.sin_port : six.sin6_port)};
}

socklen_t SocketAddress::size() const { return size_of(family()); }

}  // namespace fleetrun
