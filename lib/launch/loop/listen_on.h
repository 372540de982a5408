// Sockets of TCP servers.
#pragma once
#include <cstddef>
#include <string>

#include "base/system/endpoint.h"
#include "base/system/unique_fd.h"

namespace fleetrun::launch {

// Listens on the address of `endpoint`, IPv4 or IPv6, and fills in the port that the kernel chose for 0. Without a
// descriptor, errno says why: EINVAL when `endpoint` has no valid address.
UniqueFd listen_on(Endpoint& endpoint, std::size_t backlog);

// For a connection that was accepted: sends at once, notices a silent peer. Returns its name.
std::string welcome_peer(int fd);

std::string name_of_peer(int fd);  // "127.0.0.1:4711" or "[::1]:4711", of a connection over TCP

}  // namespace fleetrun::launch
