#include "comm/rendezvous/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/peer_watch.h"
#include "base/system/socket_address.h"

namespace fleetrun::comm {
namespace {

constexpr auto kConnectRetryPause = std::chrono::milliseconds(100);  // far below any deadline of a rendezvous
constexpr auto kConnectPatience =
    std::chrono::milliseconds(1000);  // with each of several addresses of a name
// How often who waits looks at the connection: well under the time after which a silent peer is lost.
constexpr auto kLookEvery = std::chrono::milliseconds(200);

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Error peer_error(const Endpoint& peer, const std::string& what) {
  return Error(ErrorKind::temporary, fmt::format("{}: {}", peer.describe(), what));
}

Addresses resolve(const Endpoint& peer) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(peer.host.c_str(), std::to_string(peer.port).c_str(), &hints, &found);
  if (problem != 0) throw peer_error(peer, ::gai_strerror(problem));
  return {found, &::freeaddrinfo};
}

// 1 when an event came, 0 when the deadline passed, below 0 with errno.
int poll_until(int fd, short events, Deadline deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    const auto left = std::min<long long>(deadline.remaining().count(), std::numeric_limits<int>::max());
    const int ready = ::poll(&entry, 1, static_cast<int>(left));
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

// A connected socket, or the errno that says why not.
int try_connect(const addrinfo& address, Deadline deadline, UniqueFd& connected) {
  UniqueFd fd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    const int ready = poll_until(fd.get(), POLLOUT, deadline);
    if (ready <= 0) return ready == 0 ? ETIMEDOUT : errno;
    int problem = 0;
    socklen_t size = sizeof(problem);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &size) != 0) return errno;
    if (problem != 0) return problem;
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  keep_asking(fd.get());
  connected = std::move(fd);
  return 0;
}

}  // namespace

Socket Socket::connect(const Endpoint& peer, Deadline deadline) {
  int problem = ETIMEDOUT;
  do {
    const Addresses addresses = resolve(peer);
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      UniqueFd fd;
      const bool is_only_one = addresses->ai_next == nullptr;
      const Deadline patience(is_only_one ? deadline.remaining()
                                          : std::min(deadline.remaining(), kConnectPatience));
      problem = try_connect(*address, patience, fd);
      if (problem == 0) return Socket(std::move(fd), peer);
    }
    std::this_thread::sleep_for(std::min(kConnectRetryPause, deadline.remaining()));
  } while (!deadline.passed());
  throw peer_error(
      peer, fmt::format("no connection after {:g} s: {}", deadline.total_seconds(), describe_errno(problem)));
}

bool Socket::wait_for(short events, Deadline deadline) const {
  while (true) {
    const Deadline next(std::min(deadline.remaining(), kLookEvery));
    const int ready = poll_until(fd_.get(), events, next);
    deadline.look();
    if (ready < 0) throw peer_error(peer_, describe_errno(errno));
    if (ready != 0 || deadline.passed()) return ready != 0;
    if (state_of_peer(fd_.get()) == PeerState::silent)
      throw peer_error(peer_, std::string(describe(PeerState::silent)));
  }
}

void Socket::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    if (!wait_for(POLLOUT, deadline))
      throw peer_error(peer_, fmt::format("it took nothing for {:g} s", deadline.total_seconds()));
    const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno != EAGAIN && errno != EINTR)
      throw peer_error(peer_, describe_loss(errno));
  }
}

bool Socket::receive(std::string& into, std::size_t size, Deadline deadline) {
  std::array<char, 16 << 10> chunk;
  while (into.size() < size) {
    if (!wait_for(POLLIN, deadline)) return false;
    const ssize_t got = ::recv(fd_.get(), chunk.data(), std::min(chunk.size(), size - into.size()), 0);
    if (got == 0) throw peer_error(peer_, "it closed the connection");
    if (got > 0)
      into.append(chunk.data(), static_cast<std::size_t>(got));
    else if (errno != EAGAIN && errno != EINTR)
      throw peer_error(peer_, describe_loss(errno));
  }
  return true;
}

std::string Socket::local_address() const {
  const auto address = SocketAddress::own_address(fd_.get());
  if (!address) throw peer_error(peer_, "our own address of this connection is not known");
  return *address;
}

}  // namespace fleetrun::comm
