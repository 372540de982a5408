// The address of the socket log/.control, whose path may be longer than an address of a socket.
#pragma once
#include <sys/un.h>

#include <string>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

// Names the folder to address_in; empty with errno set when it cannot be opened.
UniqueFd open_control_folder(const std::string& path);

sockaddr_un address_in(const UniqueFd& folder);

// Whether a run listens in the folder.
bool is_answered(const std::string& folder);

}  // namespace fleetrun::launch
