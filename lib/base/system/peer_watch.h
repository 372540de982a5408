// Whether who is at the other end of a TCP connection still answers. A cable that is pulled or a host that loses its
// power says nothing; left alone, the kernel notices after 15 minutes (data under way) or never (idle).
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace fleetrun {

constexpr std::chrono::seconds kPeerSilence(5);  // then a peer counts as lost

// From now on the kernel asks on an idle connection, and ends it with ETIMEDOUT after kPeerSilence without an answer.
// It ends none with data under way: also of a peer that is stopped, whose kernel answers, and takes no more.
void keep_asking(int fd);

enum class PeerState { there, closed, reset, silent };  // from the least to the most telling
std::string_view describe(PeerState state);             // "it closed the connection"

// What the kernel knows now of a connection on which it was asked to keep_asking().
PeerState state_of_peer(int fd);

// How long the peer has not answered what was sent or asked; 0 when it has, or nothing is under way.
std::chrono::milliseconds unanswered_for(int fd);

// Why reading or writing went wrong: "no answer for 5 s", "Connection reset by peer (errno 104)".
std::string describe_loss(int errno_code);

}  // namespace fleetrun
