#include "launch/doctor/probe_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>

#include "launch/loop/listen_on.h"

namespace fleetrun::launch {
namespace {

constexpr int kLookForStop = 50;             // ms
constexpr std::size_t kMostVisitors = 4096;  // connections at a time
constexpr std::size_t kBuffer = std::size_t{256} << 10;

struct Visitor {
  UniqueFd fd;
  char mode = 0;  // 0: it has not said
  std::uint64_t received = 0;
};

// False: the connection is over.
bool hear_visitor(Visitor& visitor, std::vector<char>& buffer) {
  const ssize_t count = ::recv(visitor.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) {
    if (visitor.mode == 's')
      ::send(visitor.fd.get(), &visitor.received, sizeof visitor.received, MSG_NOSIGNAL | MSG_DONTWAIT);
    return false;
  }
  const char* data = buffer.data();
  auto bytes = static_cast<std::size_t>(count);
  if (visitor.mode == 0) {
    visitor.mode = *data++;
    --bytes;
  }
  visitor.received += bytes;
  if (visitor.mode == 'e' && bytes > 0) ::send(visitor.fd.get(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  return visitor.mode == 'e' || visitor.mode == 's';
}

}  // namespace

ProbeServer::ProbeServer(const std::string& address, const std::vector<int>& ports) {
  std::vector<int> tries = ports;
  tries.push_back(0);
  for (const int port : tries) {
    endpoint_ = {address, static_cast<std::uint16_t>(port)};
    listener_ = listen_on(endpoint_, SOMAXCONN);
    if (listener_) break;
  }
  if (listener_) thread_ = std::thread([this] { serve(); });
}

ProbeServer::~ProbeServer() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void ProbeServer::serve() {
  std::map<int, Visitor> visitors;
  std::vector<char> buffer(kBuffer);
  while (!stop_) {
    std::vector<pollfd> waits = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const auto& [fd, visitor] : visitors) waits.push_back({.fd = fd, .events = POLLIN, .revents = 0});
    if (::poll(waits.data(), waits.size(), kLookForStop) <= 0) continue;
    for (std::size_t i = 1; i < waits.size(); ++i)
      if (waits[i].revents != 0 && !hear_visitor(visitors.at(waits[i].fd), buffer))
        visitors.erase(waits[i].fd);
    if (waits.front().revents == 0) continue;
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd || visitors.size() == kMostVisitors) continue;
    welcome_peer(fd.get());
    const int number = fd.get();
    visitors[number] = {std::move(fd)};
  }
}

}  // namespace fleetrun::launch
