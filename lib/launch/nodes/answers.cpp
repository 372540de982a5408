#include "launch/nodes/answers.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/system/socket_address.h"
#include "base/system/unique_fd.h"

namespace fleetrun::launch {

bool answers(const Endpoint& endpoint, std::chrono::milliseconds patience) {
  const auto address = SocketAddress::from(endpoint);
  if (!address) return false;
  const UniqueFd fd(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(fd.get(), address->data(), address->size()) == 0) return true;
  if (errno != EINPROGRESS) return errno == ECONNREFUSED;
  pollfd one = {.fd = fd.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&one, 1, static_cast<int>(patience.count())) <= 0) return false;
  int problem = 0;
  socklen_t size = sizeof problem;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
  return problem == 0 || problem == ECONNREFUSED;
}

}  // namespace fleetrun::launch
