// A process by descriptor: unlike a pid, it never refers to another process later.
#pragma once
#include <sys/types.h>

#include "base/system/unique_fd.h"

namespace fleetrun::launch {

UniqueFd open_pidfd(pid_t pid);  // close-on-exec; empty with errno set when it cannot be had
bool send_signal(const UniqueFd& pidfd, int signal);

}  // namespace fleetrun::launch
