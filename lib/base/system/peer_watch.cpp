#include "base/system/peer_watch.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/error/error.h"

namespace fleetrun {
namespace {

// The first question after a second of silence, then one each second: few enough get lost on a bad network that all
// of them do.
constexpr int kIdleSeconds = 1;
constexpr int kPauseSeconds = 1;
constexpr int kQuestions = (static_cast<int>(kPeerSilence.count()) - kIdleSeconds) / kPauseSeconds;

// Packets count as small if, on average, they have less than 1 / kSmallPart of the bytes of a full packet.
constexpr std::int64_t kSmallPart = 3;

// The tcp_info of glibc, and the first fields that Linux has after it. linux/tcp.h declares them, but it cannot be included together with
// netinet/tcp.h.
struct LongTcpInfo {
  tcp_info known;
  std::uint64_t pacing_rate, max_pacing_rate;
  std::uint64_t bytes_acked, bytes_received;
  std::uint32_t segments_out, segments_in, not_sent, least_round_trip, data_segments_in, data_segments_out;
};
static_assert(sizeof(tcp_info) == 104);

std::chrono::milliseconds unanswered_for(const tcp_info& facts) {
  // Not the window of a peer that takes nothing: its kernel answers, though ever more seldom.
  const bool sent_again = facts.tcpi_unacked > 0 && facts.tcpi_retransmits > 0;
  const bool asked_again = facts.tcpi_probes > 1;
  return std::chrono::milliseconds(sent_again || asked_again ? facts.tcpi_last_ack_recv : 0);
}

}  // namespace

void keep_asking(int fd) {
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kPauseSeconds, sizeof kPauseSeconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kQuestions, sizeof kQuestions);
}

std::string_view describe(PeerState state) {
  switch (state) {
    case PeerState::there:
      return "it is there";
    case PeerState::closed:
      return "it closed the connection";
    case PeerState::reset:
      return "the connection was reset";
    case PeerState::silent:
      return "no answer for 5 s";
  }
  return "?";
}

PeerState state_of_peer(int fd) {
  tcp_info facts{};
  socklen_t size = sizeof facts;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &facts, &size) != 0) return PeerState::reset;
  switch (facts.tcpi_state) {
    case TCP_CLOSE:  // ended by the kernel: after its questions, or by a word of the peer's
      return facts.tcpi_probes >= kQuestions ? PeerState::silent : PeerState::reset;
    case TCP_ESTABLISHED:
      return unanswered_for(facts) >= kPeerSilence ? PeerState::silent : PeerState::there;
    default:  // on the way to its end
      return PeerState::closed;
  }
}

void send_small_packets(int fd) {
  constexpr int kSegment =
      1200;  // bytes; with its headers below 1280, which IPv6 promises everywhere (RFC 8200, 5)
  ::setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &kSegment, sizeof kSegment);
}

bool loses_full_packets(int fd) {
  LongTcpInfo facts{};
  socklen_t size = sizeof facts;
  int waiting = 0;  // bytes
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &facts, &size) != 0 || size < sizeof facts ||
      ::ioctl(fd, SIOCOUTQ, &waiting) != 0)
    return false;
  // data_segments_out also counts the packets that nobody has answered yet, and those that were sent again.
  const std::int64_t answered =
      std::int64_t{facts.data_segments_out} - facts.known.tcpi_unacked - facts.known.tcpi_total_retrans;
  const auto full = static_cast<std::int64_t>(facts.known.tcpi_snd_mss);
  const auto bytes = static_cast<std::int64_t>(facts.bytes_acked);
  const bool only_small = bytes < full || bytes < std::max<std::int64_t>(answered, 1) * full / kSmallPart;
  return facts.known.tcpi_retransmits > 0 && waiting >= full && only_small;
}

std::chrono::milliseconds unanswered_for(int fd) {
  tcp_info facts{};
  socklen_t size = sizeof facts;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &facts, &size) == 0 ? unanswered_for(facts)
                                                                     : std::chrono::milliseconds();
}

std::string describe_loss(int errno_code) {
  // The last two: what the network said meanwhile, kept by the kernel for the end.
  if (errno_code == ETIMEDOUT || errno_code == EHOSTUNREACH || errno_code == ENETUNREACH)
    return std::string(describe(PeerState::silent));
  return describe_errno(errno_code);
}

}  // namespace fleetrun
