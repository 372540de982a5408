// Tells whether the peer of a TCP connection still answers. A pulled cable or a host without power sends nothing. By
// default the kernel notices that after 15 minutes (with unacknowledged data) or never (on an idle connection).
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace fleetrun {

constexpr std::chrono::seconds kPeerSilence(5);  // a peer that is silent for this long counts as lost

// Turns on keepalive: from now on the kernel probes an idle connection, and ends it with ETIMEDOUT after kPeerSilence
// without an answer. A connection with unacknowledged data lives on: its peer may be
// stopped, and then its kernel answers but takes no more data.
void keep_asking(int fd);

enum class PeerState { there, closed, reset, silent };  // from the weakest to the strongest evidence
std::string_view describe(PeerState state);             // "it closed the connection"

// The present state of a connection, after keep_asking() on it.
PeerState state_of_peer(int fd);

// Makes the packets of both directions so small that every network carries them. Some networks lose larger packets without a word,
// because an interface allows larger ones than a later part of the way (jumbo frames, a tunnel). Call it before connect().
void send_small_packets(int fd);

// Whether bytes in full packets wait for an answer, and the packets that were answered so far were small.
bool loses_full_packets(int fd);
constexpr std::string_view kFullPacketsLost =
    "small packets arrive, and full ones do not: is the MTU of the way smaller than that of the interface?";

// How long the peer has left data or probes unanswered; 0 if it has answered, or nothing awaits an answer.
std::chrono::milliseconds unanswered_for(int fd);

// Why reading or writing went wrong: "no answer for 5 s", "Connection reset by peer (errno 104)".
std::string describe_loss(int errno_code);

}  // namespace fleetrun
