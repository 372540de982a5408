// Who listens on a port: for the message that it is taken.
#pragma once
#include <cstdint>
#include <string>

namespace fleetrun::launch {

// "pid 123 (python3 train.py)"; "" when it cannot be found out.
std::string describe_port_owner(std::uint16_t port);

// The inode of a socket with this local port in the text of /proc/net/tcp or tcp6; "" when there is none.
std::string find_socket_inode(const std::string& table, std::uint16_t port);

}  // namespace fleetrun::launch
