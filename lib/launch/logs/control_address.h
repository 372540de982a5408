// The address of the socket log/.control, whose path may be longer than an address of a socket.
#pragma once
#include <sys/un.h>

#include <string>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

struct ControlAddress {
  UniqueFd
      folder;  // must stay open while the address is used; empty if there is no address, and errno says why
  sockaddr_un address{};
};

// Of the socket in the folder `path`. Without /proc there is none if the path is too long for an address: ENAMETOOLONG.
ControlAddress control_address(const std::string& path);

// Whether a run listens in the folder.
bool is_answered(const std::string& folder);

}  // namespace fleetrun::launch
