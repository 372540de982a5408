#include "launch/doctor/probe_links.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/error/error.h"
#include "base/system/peer_watch.h"
#include "base/system/unique_fd.h"
#include "launch/nodes/try_to_connect.h"

namespace fleetrun::launch {
namespace {

constexpr Clock::duration kConnectTime = std::chrono::milliseconds(1300);  // a lost SYN comes again after 1 s
constexpr auto kEchoTime = std::chrono::milliseconds(100);                 // for all round trips together
constexpr int kMostEchoes = 50;
constexpr auto kAnswerTime =
    std::chrono::milliseconds(700);  // for the last bytes to arrive and the count to come back
constexpr std::size_t kPiece = std::size_t{64} << 10;  // bytes of one write

void bound_buffer(int fd) {
  constexpr int kSendBuffer = 512 << 10;  // bytes that may be under way
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
}

// Says what follows. The problem; "" when there is none.
std::string open_probe(const UniqueFd& fd, char mode, TimePoint deadline) {
  if (!wait_for(fd.get(), POLLOUT, deadline)) return kNoAnswer;
  std::string problem = result_of_connect(fd.get());
  if (!problem.empty()) return problem;
  return ::send(fd.get(), &mode, 1, MSG_NOSIGNAL) == 1 ? "" : describe_errno(errno);
}

// Seconds of the fastest round trip; 0 when none came back.
double measure_latency(int fd) {
  double best = 0;
  const TimePoint deadline = Clock::now() + kEchoTime;
  for (int i = 0; i < kMostEchoes && Clock::now() < deadline; ++i) {
    char byte = 'x';
    const TimePoint sent = Clock::now();
    if (::send(fd, &byte, 1, MSG_NOSIGNAL) != 1 || !wait_for(fd, POLLIN, deadline) ||
        ::recv(fd, &byte, 1, MSG_DONTWAIT) != 1)
      break;
    const double trip = in_seconds(Clock::now() - sent);
    best = best == 0 ? trip : std::min(best, trip);
  }
  return best;
}

void read_tcp_info(int fd, LinkFacts& link) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  link.segments = info.tcpi_data_segs_out;
  link.retransmitted = info.tcpi_total_retrans;
  link.mtu = static_cast<int>(info.tcpi_pmtu);
}

// Whole pieces until `time` is over; then waits for the count of the bytes that arrived.
void transfer(int fd, Clock::duration time, LinkFacts& link) {
  const std::vector<char> piece(kPiece, 'x');
  const TimePoint start = Clock::now();
  while (Clock::now() < start + time) {
    if (!wait_for(fd, POLLOUT, start + time)) break;
    if (::send(fd, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) {
      link.problem = describe_errno(errno);
      return;
    }
  }
  ::shutdown(fd, SHUT_WR);
  std::uint64_t received = 0;
  const bool answered = wait_for(fd, POLLIN, Clock::now() + kAnswerTime) &&
                        ::recv(fd, &received, sizeof received, MSG_DONTWAIT) == sizeof received;
  link.bytes_per_s = static_cast<double>(received) / in_seconds(Clock::now() - start);
  read_tcp_info(fd, link);
  // A lossy link may be late with the last bytes; one that lets no full packet through has delivered none.
  tcp_info info{};
  socklen_t size = sizeof info;
  ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  if (!answered)
    link.bytes_per_s = static_cast<double>(info.tcpi_bytes_acked) / in_seconds(Clock::now() - start);
  if (info.tcpi_bytes_acked < kPiece) link.problem = kFullPacketsLost;
}

}  // namespace

LinkFacts measure_link(const Endpoint& endpoint, Clock::duration time) {
  LinkFacts link;
  const UniqueFd echo = begin_to_connect(endpoint, link.problem),
                 stream = begin_to_connect(endpoint, link.problem);
  if (!echo || !stream) return link;
  bound_buffer(stream.get());
  const TimePoint deadline = Clock::now() + kConnectTime;
  link.problem = open_probe(echo, 'e', deadline);
  if (link.problem.empty()) link.problem = open_probe(stream, 's', deadline);
  if (!link.problem.empty()) return link;
  link.latency = measure_latency(echo.get());
  transfer(stream.get(), time, link);
  return link;
}

}  // namespace fleetrun::launch
