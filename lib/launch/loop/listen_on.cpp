#include "launch/loop/listen_on.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/system/peer_watch.h"
#include "base/system/socket_address.h"

namespace fleetrun::launch {
UniqueFd listen_on(Endpoint& endpoint, std::size_t backlog) {
  errno = EINVAL;
  const auto address = SocketAddress::from(endpoint);
  if (!address) return UniqueFd();
  const int on = 1;
  UniqueFd fd(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd || ::bind(fd.get(), address->data(), address->size()) != 0 ||
      ::listen(fd.get(), static_cast<int>(backlog)) != 0)
    return UniqueFd();  // close() of a socket leaves errno alone
  const auto own = SocketAddress::own_end(fd.get());
  if (!own) return UniqueFd();
  endpoint.port = own->endpoint().port;
  return fd;
}

std::string welcome_peer(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  keep_asking(fd);
  return name_of_peer(fd);
}

std::string name_of_peer(int fd) {
  const auto address = SocketAddress::end_of_peer(fd);
  return address ? address->endpoint().describe() : "a peer that left";
}

}  // namespace fleetrun::launch
