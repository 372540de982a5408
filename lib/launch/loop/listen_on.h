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

// Sets up an accepted connection: it sends without delay, and the kernel notices a silent peer. Returns the peer's
// name.
std::string welcome_peer(int fd);

std::string name_of_peer(int fd);  // "127.0.0.1:4711" or "[::1]:4711", for a TCP connection

}  // namespace fleetrun::launch
