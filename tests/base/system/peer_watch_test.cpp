#include "base/system/peer_watch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include <doctest/doctest.h>

#include "base/system/unique_fd.h"

namespace fleetrun::peer_watch_test {
namespace {

// Two ends of a connection over loopback. What a silent network looks like: tests/e2e/faults/network_fault_test.cpp.
struct Connection {
  Connection() {
    const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ours.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
        ::getsockname(listener.get(), generic, &size) != 0 || ::connect(ours.get(), generic, size) != 0)
      throw std::runtime_error("no connection over loopback");
    theirs.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    keep_asking(ours.get());
  }

  UniqueFd ours, theirs;
};

int option_of(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  ::getsockopt(fd, level, name, &value, &size);
  return value;
}

TEST_CASE("a peer that is there, closes or resets the connection") {
  Connection kept, closed, reset;
  CHECK(state_of_peer(kept.ours.get()) == PeerState::there);
  closed.theirs.reset();
  const auto becomes = [](const Connection& connection, PeerState state) {
    constexpr int kLooks = 1000,
                  kPause = 10'000;  // 10 s in microseconds: the kernel delivers when it has a core
    for (int i = 0; i < kLooks && state_of_peer(connection.ours.get()) != state; ++i)
      ::usleep(kPause);  // polls: poll(2) would answer instead of state_of_peer
    return state_of_peer(connection.ours.get()) == state;
  };
  CHECK(becomes(closed, PeerState::closed));
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(reset.theirs.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  reset.theirs.reset();
  CHECK(becomes(reset, PeerState::reset));
}

TEST_CASE("a peer that takes nothing more is there") {
  const Connection connection;
  const std::array<char, 65536> bytes{};
  while (::send(connection.ours.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  CHECK(errno == EAGAIN);
  CHECK(state_of_peer(connection.ours.get()) == PeerState::there);
}

TEST_CASE("the kernel probes an idle peer often enough to lose it after the promised time") {
  const Connection connection;
  const int fd = connection.ours.get();
  CHECK(option_of(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
            option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL) * option_of(fd, IPPROTO_TCP, TCP_KEEPCNT) ==
        kPeerSilence.count());
}

TEST_CASE("what the kernel calls the end of its patience is silence in our words") {
  CHECK(describe_loss(ETIMEDOUT) == "no answer for 5 s");
  CHECK(describe_loss(EHOSTUNREACH) == "no answer for 5 s");
  CHECK(describe_loss(ECONNRESET) == "Connection reset by peer (errno 104)");
}

}  // namespace
}  // namespace fleetrun::peer_watch_test
