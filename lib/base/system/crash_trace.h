// When this process crashes, prints its name and stack to stderr; then the process ends by the same signal.
#pragma once
#include <string>

namespace fleetrun {

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT from now on. The first line starts with `who`: "rank 3".
void install_crash_trace(const std::string& who);

}  // namespace fleetrun
