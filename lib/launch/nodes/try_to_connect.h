// Connections to other hosts without an event loop, to find out whether this host reaches them.
#pragma once
#include <string>
#include <vector>

#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

constexpr const char* kNoAnswer = "no answer: does a firewall drop the packets?";

// For each endpoint, why it cannot be reached; "": it can. Port 0 stands for a node that is not asked. All at the same
// time, within `limit`.
std::vector<std::string> try_to_connect(const std::vector<Endpoint>& endpoints, Clock::duration limit);

// One such try. The socket is ready for POLLOUT once it has an answer. None: `problem` says why it cannot have one.
UniqueFd begin_to_connect(const Endpoint& endpoint, std::string& problem);
bool wait_for(int fd, short events, TimePoint deadline);  // with poll(2); false: the time is over
std::string result_of_connect(int fd);                    // ""; or why it has failed

}  // namespace fleetrun::launch
