// A TCP client without manners: says whatever bytes it is given, and tells when it was thrown out.
#pragma once
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"

namespace fleetrun::testing {

class Stranger {
 public:
  explicit Stranger(const Endpoint& endpoint) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    ::inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr);
    if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      throw std::runtime_error("a stranger cannot connect to " + endpoint.describe());
  }

  // Its own end may be closed by now: then nothing happens.
  void say(std::string_view bytes) { (void)::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  // What comes next, "" when the other side closed. Throws after 10 s without either.
  std::string hear() {
    if (!hears_within(10'000)) throw std::runtime_error("a stranger heard nothing for 10 s");
    std::string bytes(4096, '\0');
    const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
  bool hears_within(int milliseconds) const {
    pollfd entry{fd_.get(), POLLIN, 0};
    return ::poll(&entry, 1, milliseconds) == 1;
  }
  bool thrown_out() { return hear().empty(); }

 private:
  UniqueFd fd_;
};

}  // namespace fleetrun::testing
