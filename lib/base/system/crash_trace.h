// When this process crashes, prints its name and stack to stderr; then the process ends by the same signal.
#pragma once
#include <string>
#include <string_view>

namespace fleetrun {

// What follows the name in the first line of a trace. Each further line is a frame and ends with its address in brackets.
inline constexpr std::string_view kCrashHeadline = ": crashed by SIG";

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT from now on. The first line starts with `who`: "rank 3".
void install_crash_trace(const std::string& who);

}  // namespace fleetrun
