#include "launch/nodes/try_to_connect.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/error/error.h"
#include "base/system/socket_address.h"

namespace fleetrun::launch {
namespace {

int milliseconds_until(TimePoint deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(0, left));
}

// To those that have not answered yet, at the same time.
void connect_to_silent(const std::vector<Endpoint>& endpoints, Clock::duration limit,
                       std::vector<std::string>& problems) {
  std::vector<UniqueFd> sockets(endpoints.size());
  for (std::size_t i = 0; i < endpoints.size(); ++i)
    if (problems[i] == kNoAnswer) sockets[i] = begin_to_connect(endpoints[i], problems[i]);
  const TimePoint deadline = Clock::now() + limit;
  for (std::size_t i = 0; i < endpoints.size(); ++i)
    if (sockets[i])
      problems[i] =
          wait_for(sockets[i].get(), POLLOUT, deadline) ? result_of_connect(sockets[i].get()) : kNoAnswer;
}

}  // namespace

UniqueFd begin_to_connect(const Endpoint& endpoint, std::string& problem) {
  const auto address = SocketAddress::from(endpoint);
  if (!address) {
    problem = "found \"" + endpoint.describe() + "\", wanted an address and a port";
    return UniqueFd();
  }
  UniqueFd fd(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), address->data(), address->size()) == 0 || errno == EINPROGRESS) return fd;
  problem = describe_errno(errno);
  return UniqueFd();
}

bool wait_for(int fd, short events, TimePoint deadline) {
  pollfd one = {.fd = fd, .events = events, .revents = 0};
  return ::poll(&one, 1, milliseconds_until(deadline)) > 0;
}

std::string result_of_connect(int fd) {
  int code = 0;
  socklen_t size = sizeof code;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
  return code == 0 ? "" : describe_errno(code);
}

// Twice: where packets get lost, a connection may fail, but hardly two.
std::vector<std::string> try_to_connect(const std::vector<Endpoint>& endpoints, Clock::duration limit) {
  std::vector<std::string> problems;
  problems.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) problems.push_back(endpoint.port != 0 ? kNoAnswer : "");
  for (int attempt = 0; attempt < 2; ++attempt) connect_to_silent(endpoints, limit / 2, problems);
  return problems;
}

}  // namespace fleetrun::launch
